sylar_test(io/bad_input_test LINKS sylar::io)
sylar_test(io/blocking_pool_test LINKS sylar::io)
sylar_test(io/fd_entry_test LINKS sylar::io)
sylar_test(io/fd_entry_signal_test LINKS sylar::io)
sylar_test(io/fd_table_test LINKS sylar::io)
sylar_test(io/iomanager_promises_test LINKS sylar::io)
sylar_test(io/iomanager_event_test LINKS sylar::io)
sylar_test(io/iomanager_timer_test LINKS sylar::io)
if(NOT SYLAR_SANITIZE)  # it brings its own operator new, and so do the sanitizers
  sylar_test(io/timer_memory_test LINKS sylar::io)
endif()
sylar_test(io/iomanager_race_test LINKS sylar::io TIMEOUT 180)
sylar_test(io/socket_timeout_test LINKS sylar::sylar sylar::hook)
sylar_test(io/socket_timeout_race_test LINKS sylar::sylar sylar::hook TIMEOUT 120)
sylar_test(io/mix_race_test LINKS sylar::sylar sylar::hook TIMEOUT 180)

# What an idle process does, seen from outside: strace counts.
add_executable(io_idle_program ${CMAKE_CURRENT_LIST_DIR}/idle_program.cc)
target_link_libraries(io_idle_program PRIVATE sylar_flags sylar::io GTest::gtest)
set_target_properties(io_idle_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(NOT SYLAR_SANITIZE)  # a sanitizer's runtime makes system calls of its own
  add_test(NAME Idle.MakesNoSystemCall COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/idle_trace_test.py $<TARGET_FILE:io_idle_program>)
  set_tests_properties(Idle.MakesNoSystemCall PROPERTIES TIMEOUT 120)
endif()
