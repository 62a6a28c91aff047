# What a manager promises holds with every queue: these programs take theirs from SYLAR_TEST_QUEUE. Not with the published
# wheel's tick of 10 ms: the promises are in milliseconds.
function(sylar_timer_test path)
  sylar_test(${path} ${ARGN} LINKS sylar::timer)
  string(REPLACE "/" "_" name ${path})
  foreach(queue set binary_heap wheel)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${queue}/ TEST_LIST ${name}_${queue}
      PROPERTIES TIMEOUT 120 ENVIRONMENT SYLAR_TEST_QUEUE=${queue})
  endforeach()
endfunction()

sylar_test(timer/timer_queue_test LINKS sylar::timer)
sylar_test(timer/timer_queue_model_test LINKS sylar::timer TIMEOUT 120)
sylar_test(timer/wheel_queue_test LINKS sylar::timer)
sylar_test(timer/timer_pool_test LINKS sylar::timer)
sylar_test(timer/timer_iomanager_test LINKS sylar::io)
sylar_test(timer/idle_list_test LINKS sylar::io)
sylar_counts_queue_operations(timer_idle_list_test)
sylar_test(timer/idle_list_race_test LINKS sylar::timer TIMEOUT 120)
sylar_timer_test(timer/timer_id_test)
sylar_timer_test(timer/timer_repeat_test)
sylar_timer_test(timer/timer_id_race_test)
sylar_timer_test(timer/timer_manager_test)
sylar_timer_test(timer/timer_cancel_test)
sylar_timer_test(timer/timer_condition_test)
sylar_timer_test(timer/timer_tickle_test)
sylar_timer_test(timer/timer_clock_test)
sylar_timer_test(timer/timer_lifetime_test)
sylar_timer_test(timer/timer_table_test)
sylar_test(timer/standalone_loop_test LINKS sylar::timer TIMEOUT 120)
sylar_timer_test(timer/timer_race_test TIMEOUT 120)
if(NOT "${SYLAR_SANITIZE}" MATCHES thread)  # it brings its own operator new, and so does ThreadSanitizer
  sylar_test(timer/timer_memory_test LINKS sylar::timer)
  sylar_test(timer/idle_list_memory_test LINKS sylar::timer)
endif()

# The page of this room walks a timer from addTimer to its callback; each name on the way must be in the code.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME timer_walk_is_in_the_code
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/timer/check_walk.py ${PROJECT_SOURCE_DIR} docs/design/timer.md)
