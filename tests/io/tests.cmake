sylar_tests(io LINKS sylar::io FILES
  bad_input iomanager_event iomanager_promises iomanager_timer stop_timer_sync)
sylar_tests(io_table LINKS sylar::io FILES fd_entry fd_entry_signal fd_table)  # without an engine of the kernel
sylar_test(io/precise_sleep_test LINKS sylar::io)
sylar_test(io/sleep_kernel_test LINKS sylar::io)
sylar_test(io/spin_test LINKS sylar::io)
if(NOT SYLAR_SANITIZE)  # which makes such calls itself
  sylar_test(io/refused_start_test LINKS sylar::io)
endif()
sylar_test(io/timer_pass_test LINKS sylar::io)
if(NOT SYLAR_SANITIZE)  # it brings its own operator new, and so do the sanitizers
  sylar_test(io/timer_memory_test LINKS sylar::io)
endif()
sylar_test(io/iomanager_race_test LINKS sylar::io)
sylar_tests(io_hooked_race LINKS sylar::sylar sylar::hook FILES
  mix_race socket_timeout_race)
sylar_test(io/socket_timeout_test LINKS sylar::sylar sylar::hook)
sylar_with_uring(RELEASE io_tests)
sylar_with_uring(io_iomanager_race_test io_hooked_race_tests io_socket_timeout_test)

# What an idle process does, seen from outside: strace counts.
add_executable(io_idle_program ${CMAKE_CURRENT_LIST_DIR}/idle_program.cc)
target_link_libraries(io_idle_program PRIVATE sylar_flags sylar::io GTest::gtest)
set_target_properties(io_idle_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(NOT SYLAR_SANITIZE)  # a sanitizer's runtime makes system calls of its own
  add_test(NAME Idle.MakesNoSystemCall COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/idle_trace_test.py $<TARGET_FILE:io_idle_program>)
  set_tests_properties(Idle.MakesNoSystemCall PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()
