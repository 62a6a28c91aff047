sylar_tests(hook LINKS sylar::sylar sylar::hook sylar::testing FILES
  core/busy_wait core/cancel_scope core/coverage core/deadline_scope core/foreign_thread core/hook_stats core/life_cycle
  core/never_blocks core/off core/originals core/probe core/syscall
  fd/closing fd/connect_flags fd/descriptors fd/fairness fd/kinds fd/pooled_buffer fd/left_behind fd/parking fd/pieces
  fd/poll_close fd/proven_empty fd/scm_rights fd/shared_accept fd/sharing fd/short_read fd/transfer_parking
  fd/unix_write_timeout fd/waiters fd/whole_read fd/whole_write
  file/fifo_open file/file file/file_lock file/stdio
  lock/lock_waits lock/locks lock/mutex_words
  signal/signal_wait
  thread/fiber_thread thread/sent_signals
  process/children process/clock process/daemon process/fork)
sylar_with_uring(RELEASE hook_tests)
foreach(race core/cancel_scope process/children fd/close fd/closers signal/eintr lock/locks signal/signal_close fd/stay fd/switch)
  sylar_test(hook/${race}_race_test LINKS sylar::sylar sylar::hook)
  string(REPLACE "/" "_" name ${race})
  sylar_with_uring(hook_${name}_race_test)
endforeach()
if(NOT SYLAR_SANITIZE)  # answers that are compared, of one worker
  file(GLOB cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/same_as_libc/*_test.cc)
  add_executable(hook_same_as_libc_tests ${cases})
  target_link_libraries(hook_same_as_libc_tests PRIVATE sylar_flags sylar::sylar sylar::hook GTest::gtest_main)
  set_target_properties(hook_same_as_libc_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  sylar_with_uring(TOGETHER hook_same_as_libc_tests)
  add_test(NAME Conformance.AllCasesAreCompared COMMAND ${PROJECT_SOURCE_DIR}/scripts/conformance.py ${PROJECT_BINARY_DIR})  # HA-5
  set_tests_properties(Conformance.AllCasesAreCompared PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT} PROCESSORS 2)
endif()
sylar_test(hook/core/libc_internals_test LINKS sylar::base)
if(NOT SYLAR_SANITIZE)  # where threads stay threads
  sylar_test(hook/process/set_ids_test LINKS sylar::sylar sylar::hook)
  target_compile_options(hook_process_set_ids_test PRIVATE -fPIC)  # so that it has no copy of libc's variables
endif()
sylar_test(hook/thread/identity_test LINKS sylar::sylar sylar::hook sylar::testing)
sylar_test(hook/thread/as_threads_test LINKS sylar::sylar sylar::hook)
add_library(hook_variables_plugin MODULE ${CMAKE_CURRENT_LIST_DIR}/thread/variables_plugin.cc)
set_target_properties(hook_variables_plugin PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_compile_definitions(hook_thread_as_threads_test PRIVATE SYLAR_PLUGIN="$<TARGET_FILE_NAME:hook_variables_plugin>")
add_dependencies(hook_thread_as_threads_test hook_variables_plugin)
sylar_test(hook/fd/ring_test LINKS sylar::sylar sylar::hook)
sylar_test(hook/fd/ring_transfer_test LINKS sylar::sylar sylar::hook sylar::testing)
sylar_test(hook/fd/fortified_parking_test LINKS sylar::sylar sylar::hook)
sylar_test(hook/core/handler_stack_test LINKS sylar::sylar sylar::hook OWN_SANITIZER_OPTIONS)
sylar_test(hook/core/watchdog_test LINKS sylar::sylar sylar::hook)
set_target_properties(hook_core_watchdog_test PROPERTIES ENABLE_EXPORTS ON)  # so that its functions have names in a backtrace

# Before the library's constructors and after main.
add_executable(hook_early_late_program ${CMAKE_CURRENT_LIST_DIR}/core/early_late_program.cc)
target_link_libraries(hook_early_late_program PRIVATE sylar_flags sylar::sylar sylar::hook)
set_target_properties(hook_early_late_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_test(NAME EarlyAndLate.HooksWorkBeforeConstructorsAndAfterMain COMMAND hook_early_late_program)  # CD-H11, FM-34
set_tests_properties(EarlyAndLate.HooksWorkBeforeConstructorsAndAfterMain PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

# Sequences of calls made from seeds, on libc and through the hooks; hours of it are a step of scripts/soak.sh.
set(differential ${CMAKE_CURRENT_LIST_DIR}/differential)
add_executable(hook_differential ${differential}/main.cc ${differential}/compare.cc ${differential}/run.cc ${differential}/perform.cc
  ${differential}/plan.cc)
target_link_libraries(hook_differential PRIVATE sylar_flags sylar::sylar sylar::hook GTest::gtest)
set_target_properties(hook_differential PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(differential_plans 200)
if(SYLAR_SANITIZE)
  target_link_libraries(hook_differential PRIVATE sylar_test_sanitizers)
  set(differential_plans 30)
endif()
# libc's own calls pass ThreadSanitizer by, which then takes a number that is used again for a race.
if(NOT SYLAR_SANITIZE MATCHES thread)
  add_test(NAME Differential.HooksAreLibc COMMAND hook_differential --seed 1 --plans ${differential_plans})
  add_test(NAME Differential.MistakesCanBeMade COMMAND python3 ${differential}/mistakes.py check)
  set_tests_properties(Differential.HooksAreLibc PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()


# A program that would lose its hooks is told so: by the linker, or at its start.
if(NOT BUILD_SHARED_LIBS)
  add_executable(hook_hidden_program ${CMAKE_CURRENT_LIST_DIR}/core/hidden_program.cc)
  target_link_libraries(hook_hidden_program PRIVATE sylar_flags sylar::hook)
  target_link_options(hook_hidden_program PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(hook_hidden_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  add_test(NAME LostHooks.AreToldAtStart COMMAND hook_hidden_program)  # HA-1
  set_tests_properties(LostHooks.AreToldAtStart PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT} PASS_REGULAR_EXPRESSION "shared libraries do not see the hooks")
  set_tests_properties(EarlyAndLate.HooksWorkBeforeConstructorsAndAfterMain PROPERTIES FAIL_REGULAR_EXPRESSION "do not see the hooks")
  if(NOT SYLAR_SANITIZE)
    add_test(NAME LostHooks.AreToldByTheLinkerOfAStaticProgram
             COMMAND ${CMAKE_CXX_COMPILER} -static -o ${PROJECT_BINARY_DIR}/hook_static_program ${CMAKE_CURRENT_LIST_DIR}/core/hidden_program.cc
                     -Wl,--whole-archive $<TARGET_FILE:sylar_hook_library> -Wl,--no-whole-archive)
    set_tests_properties(LostHooks.AreToldByTheLinkerOfAStaticProgram PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT}
      PASS_REGULAR_EXPRESSION "undefined reference to .__tls_get_addr")
  endif()
endif()
if(TARGET sylar-run AND NOT BUILD_SHARED_LIBS)
  add_executable(hook_behind_program ${CMAKE_CURRENT_LIST_DIR}/core/hidden_program.cc)
  target_link_libraries(hook_behind_program PRIVATE sylar_flags)
  target_link_options(hook_behind_program PRIVATE LINKER:--no-as-needed,-lc $<TARGET_FILE:sylar-run-object>)
  add_dependencies(hook_behind_program sylar-run-object)
  set_target_properties(hook_behind_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin BUILD_RPATH $<TARGET_FILE_DIR:sylar-run-object>)
  add_test(NAME LostHooks.BehindLibcAreToldAtStart COMMAND hook_behind_program)
  set_tests_properties(LostHooks.BehindLibcAreToldAtStart PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT} PASS_REGULAR_EXPRESSION "libc stands before the hooks")
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(CLIENTS REQUIRED IMPORTED_TARGET hiredis libpq libcurl)
sylar_test(hook/core/bindings_test LINKS sylar::hook PkgConfig::CLIENTS)
sylar_test(hook/core/ready_call_test LINKS sylar::sylar sylar::hook sylar::testing)

# A plugin brings a libcurl along that the program does not see.
pkg_check_modules(LIBCURL REQUIRED IMPORTED_TARGET libcurl)
add_library(hook_local_libcurl_plugin MODULE ${CMAKE_CURRENT_LIST_DIR}/core/local_libcurl_plugin.cc)
set_target_properties(hook_local_libcurl_plugin PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_compile_options(hook_local_libcurl_plugin PRIVATE -O2 -fno-sanitize=all)  # a tail call
target_link_libraries(hook_local_libcurl_plugin PRIVATE PkgConfig::LIBCURL)
sylar_test(hook/core/local_libcurl_test LINKS sylar::sylar sylar::hook)
set_target_properties(hook_core_local_libcurl_test PROPERTIES ENABLE_EXPORTS ON)
target_compile_definitions(hook_core_local_libcurl_test PRIVATE SYLAR_PLUGIN="$<TARGET_FILE_NAME:hook_local_libcurl_plugin>")
add_dependencies(hook_core_local_libcurl_test hook_local_libcurl_plugin)

# Lookups of names ask a module of NSS that belongs to the test.
add_library(nss_sylar MODULE ${CMAKE_CURRENT_LIST_DIR}/names/nss_module.cc)
set_target_properties(nss_sylar PROPERTIES SUFFIX .so.2 LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_link_options(nss_sylar PRIVATE -Wl,-soname,libnss_sylar.so.2)
function(sylar_asks_nss_module target)
  add_dependencies(${target} nss_sylar)
  target_compile_definitions(${target} PRIVATE SYLAR_NSS_MODULE="$<TARGET_FILE_NAME:nss_sylar>")
endfunction()
sylar_test(hook/names/names_test LINKS sylar::sylar sylar::hook)
sylar_asks_nss_module(hook_names_names_test)
sylar_test(hook/signal/eintr_test LINKS sylar::sylar sylar::hook)
target_sources(hook_signal_eintr_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/signal/signal_support.cc)
# ThreadSanitizer has actions of its own in the kernel's record, and keeps signals back.
if(NOT SYLAR_SANITIZE MATCHES thread)
  sylar_test(hook/signal/signal_test LINKS sylar::sylar sylar::hook OWN_SANITIZER_OPTIONS)
  sylar_test(hook/core/own_stacks_test LINKS sylar::sylar sylar::hook)
  sylar_with_uring(hook_core_own_stacks_test)
endif()
sylar_test(hook/fd/stay_test LINKS sylar::sylar sylar::hook sylar::testing)
target_sources(hook_fd_stay_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/fd/stay_support.cc)
