sylar_tests(log LINKS sylar::log FILES
  apply file formatter last_words level logger macros writer)
sylar_test(log/fiber_test LINKS sylar::sylar sylar::hook)
if(NOT SYLAR_SANITIZE)  # the sanitizers' own locks are left taken in the child of many threads
  sylar_test(log/fork_test LINKS sylar::log)
endif()
sylar_test(log/log_race_test LINKS sylar::log)

# Before main, and after it.
add_executable(log_early_late_program ${CMAKE_CURRENT_LIST_DIR}/early_late_program.cc)
target_link_libraries(log_early_late_program PRIVATE sylar_flags sylar::log)
set_target_properties(log_early_late_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_test(NAME EarlyAndLate.LinesOfStaticsAreWrittenInOrder  # FM-34
  COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/early_late_test.py $<TARGET_FILE:log_early_late_program>)
set_tests_properties(EarlyAndLate.LinesOfStaticsAreWrittenInOrder PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
