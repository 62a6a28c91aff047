# What a manager promises holds with every queue: these programs take theirs from SYLAR_TEST_QUEUE. With the published wheel's
# tick of 10 ms only those of timer_any_tick that promise nothing in milliseconds; timer_contract_test has the promises in ticks.
# Queues run under their manager's lock, so with ThreadSanitizer only the races are run with each.
function(sylar_with_each_queue program)
  if(SYLAR_SANITIZE MATCHES thread AND NOT program MATCHES race)
    return()
  endif()
  foreach(queue set binary_heap wheel ${ARGN})
    sylar_add_tests(${program} ${queue}/ ENVIRONMENT SYLAR_TEST_QUEUE=${queue})
  endforeach()
endfunction()

sylar_tests(timer LINKS sylar::io FILES
  growing_array standalone_loop timer_contract timer_iomanager timer_pool timer_queue timer_queue_model
  timer_runs wheel_queue)
sylar_test(timer/idle_list_test LINKS sylar::io)
sylar_counts_queue_operations(timer_idle_list_test)
sylar_test(timer/idle_list_race_test LINKS sylar::timer)
sylar_tests(timer_queue LINKS sylar::timer FILES
  timer_cancel timer_clock timer_condition timer_id timer_lifetime timer_manager timer_repeat timer_sets timer_stats timer_table timer_tickle)
sylar_with_each_queue(timer_queue_tests)
sylar_tests(timer_any_tick ONE_THREAD LINKS sylar::timer FILES timer_bad_input timer_storm)
sylar_with_each_queue(timer_any_tick_tests wheel_10ms)
sylar_test(timer/timer_clock_race_test LINKS sylar::timer)
sylar_with_each_queue(timer_timer_clock_race_test wheel_10ms)
foreach(each timer_id_race timer_race)
  sylar_test(timer/${each}_test LINKS sylar::timer)
  sylar_with_each_queue(timer_${each}_test)
endforeach()
if(NOT "${SYLAR_SANITIZE}" MATCHES thread)  # it brings its own operator new, and so does ThreadSanitizer
  sylar_test(timer/timer_memory_test LINKS sylar::timer)
  sylar_test(timer/idle_list_memory_test LINKS sylar::timer)
endif()

if(NOT SYLAR_SANITIZE)
  # The page of this module walks a timer from addTimer to its callback; each name on the way must be in the code.
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME timer_walk_is_in_the_code
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/timer/check_walk.py ${PROJECT_SOURCE_DIR} docs/design/timer.md)
endif()
