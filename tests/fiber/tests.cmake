sylar_test(fiber/stack_test LINKS sylar::fiber)
sylar_test(fiber/stack_failure_test LINKS sylar::io)
sylar_test(fiber/context_test LINKS sylar::fiber)
# The same with Boost.Context's switch. A sanitizer's build has no other.
if(NOT SYLAR_SANITIZE)
  add_executable(fiber_context_boost_test fiber/context_test.cc ${PROJECT_SOURCE_DIR}/sylar/fiber/context.cc ${PROJECT_SOURCE_DIR}/sylar/fiber/stack.cc)
  target_compile_definitions(fiber_context_boost_test PRIVATE SYLAR_CONTEXT_BOOST)
  target_link_libraries(fiber_context_boost_test PRIVATE sylar_flags sylar::base Boost::context GTest::gtest_main)
  set_target_properties(fiber_context_boost_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  gtest_discover_tests(fiber_context_boost_test TEST_PREFIX Boost. DISCOVERY_MODE PRE_TEST)
endif()
sylar_test(fiber/frames_test LINKS sylar::io)
sylar_test(fiber/wait_word_test LINKS sylar::fiber)
sylar_test(fiber/wait_word_race_test LINKS sylar::fiber TIMEOUT 120)
sylar_test(fiber/fiber_core_test LINKS sylar::sched)
sylar_test(fiber/fiber_test LINKS sylar::fiber)
sylar_test(fiber/fiber_lifetime_test LINKS sylar::fiber)
sylar_test(fiber/fiber_join_test LINKS sylar::io TIMEOUT 120)
sylar_test(fiber/fiber_owner_test LINKS sylar::io TIMEOUT 120)
sylar_test(fiber/fiber_scheduled_test LINKS sylar::io TIMEOUT 120)
sylar_test(fiber/fiber_exceptions_test LINKS sylar::io sylar::hook TIMEOUT 120)
sylar_test(fiber/process_end_test LINKS sylar::io TIMEOUT 120)

# What a compiler takes for granted about threads shows with optimisation only, so these are -O2 in every preset. The second
# program takes them from a shared library, as third-party clients come: there each thread_local goes through __tls_get_addr.
sylar_test(fiber/pinning_test LINKS sylar::io sylar::hook TIMEOUT 120)
target_sources(fiber_pinning_test PRIVATE fiber/pinning_programs.cc)
set_source_files_properties(fiber/pinning_programs.cc PROPERTIES COMPILE_OPTIONS "-O2")

add_library(fiber_pinning_programs SHARED fiber/pinning_programs.cc)
target_include_directories(fiber_pinning_programs PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(fiber_pinning_programs PRIVATE -O2 -fPIC)
target_link_libraries(fiber_pinning_programs PRIVATE sylar_flags Threads::Threads)
add_executable(fiber_pinning_pic_test fiber/pinning_test.cc)
target_compile_options(fiber_pinning_pic_test PRIVATE -O2 -fPIC)
target_link_libraries(fiber_pinning_pic_test PRIVATE sylar_flags fiber_pinning_programs sylar::io sylar::hook GTest::gtest_main)
set_target_properties(fiber_pinning_pic_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
gtest_discover_tests(fiber_pinning_pic_test TEST_PREFIX Pic. DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120)

# What is left of a frame depends on the compiler and its level, not on this tree's: each that there is takes part.
sylar_test(fiber/overflow_test LINKS sylar::io TIMEOUT 120)
foreach(compiler g++ clang++)
  string(REPLACE "++" "xx" overflow_compiler ${compiler})
  find_program(SYLAR_OVERFLOW_${overflow_compiler} ${compiler})
  if(SYLAR_OVERFLOW_${overflow_compiler})
    foreach(level O0 O2)
      set(overflow_object ${CMAKE_CURRENT_BINARY_DIR}/overflow_${overflow_compiler}_${level}.o)
      add_custom_command(OUTPUT ${overflow_object}
        COMMAND ${SYLAR_OVERFLOW_${overflow_compiler}} -std=c++20 -${level} -fPIC -fstack-clash-protection
                -I${PROJECT_SOURCE_DIR} -DSYLAR_BUILD="${overflow_compiler}_${level}"
                -c ${CMAKE_CURRENT_LIST_DIR}/overflow_programs.cc -o ${overflow_object}
        DEPENDS ${CMAKE_CURRENT_LIST_DIR}/overflow_programs.cc ${CMAKE_CURRENT_LIST_DIR}/overflow_programs.h
        VERBATIM)
      target_sources(fiber_overflow_test PRIVATE ${overflow_object})
    endforeach()
  endif()
endforeach()
if("${SYLAR_SANITIZE}" MATCHES address)
  sylar_test(fiber/asan_test LINKS sylar::io)
endif()
if(NOT SYLAR_SANITIZE)  # a sanitizer's runtime is the handler there
  sylar_test(fiber/fault_handlers_test LINKS sylar::fiber)
endif()
if(TARGET example_fibers AND NOT SYLAR_SANITIZE)
  add_test(NAME Gdb.TraceOfAFiberEnds COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/gdb_trace_test.py $<TARGET_FILE:example_fibers>)
  set_tests_properties(Gdb.TraceOfAFiberEnds PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
