sylar_tests(sync LINKS sylar::io sylar::sync FILES
  blocking_pool channel condition_variable event fork future held_locks mutex once rw_mutex semaphore task_group
  wait_group waiters when worker_group)
sylar_tests(sync_hooked LINKS sylar::sylar sylar::hook FILES
  blocking select)
sylar_tests(sync_race LINKS sylar::io sylar::sync FILES
  mixed_race select_race sync_race)

# What fibers of one worker do for one another, seen from outside: strace counts.
add_executable(sync_hand_off_program ${CMAKE_CURRENT_LIST_DIR}/hand_off_program.cc)
target_link_libraries(sync_hand_off_program PRIVATE sylar_flags sylar::io sylar::sync)
set_target_properties(sync_hand_off_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(NOT SYLAR_SANITIZE)  # a sanitizer's runtime makes system calls of its own
  add_test(NAME HandOff.MakesNoSystemCall COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/hand_off_trace_test.py $<TARGET_FILE:sync_hand_off_program>)
  set_tests_properties(HandOff.MakesNoSystemCall PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()
