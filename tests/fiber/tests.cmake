sylar_tests(fiber LINKS sylar::io FILES
  control_memory end_observers fiber fiber_core fiber_join fiber_lifetime fiber_local fiber_owner
  fiber_requests fiber_scheduled frames process_end stack wait_word)
sylar_test(fiber/stack_failure_test LINKS sylar::io)
sylar_test(fiber/context_test LINKS sylar::fiber)
# The same with Boost.Context's switch. A sanitizer's build has no other.
if(NOT SYLAR_SANITIZE)
  add_executable(fiber_context_boost_test fiber/context_test.cc ${PROJECT_SOURCE_DIR}/sylar/fiber/context.cc ${PROJECT_SOURCE_DIR}/sylar/fiber/stack.cc)
  target_compile_definitions(fiber_context_boost_test PRIVATE SYLAR_CONTEXT_BOOST)
  target_link_libraries(fiber_context_boost_test PRIVATE sylar_flags sylar::base Boost::context GTest::gtest_main)
  set_target_properties(fiber_context_boost_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  sylar_add_tests(fiber_context_boost_test Boost.)
endif()
sylar_test(fiber/fiber_exceptions_test LINKS sylar::io sylar::hook)
sylar_test(fiber/wait_word_race_test LINKS sylar::fiber)

# What a compiler takes for granted about threads shows with optimisation only, so these are -O2 in every preset. The second
# program takes them from a shared library, as third-party clients come: there each thread_local goes through __tls_get_addr.
add_library(fiber_pinning_inside OBJECT fiber/pinning_programs.cc)
target_compile_options(fiber_pinning_inside PRIVATE -O2)
target_link_libraries(fiber_pinning_inside PRIVATE sylar_flags)
sylar_test(fiber/pinning_test LINKS fiber_pinning_inside sylar::io sylar::hook)

add_library(fiber_pinning_programs SHARED fiber/pinning_programs.cc)
target_include_directories(fiber_pinning_programs PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(fiber_pinning_programs PRIVATE -O2 -fPIC)
target_link_libraries(fiber_pinning_programs PRIVATE sylar_flags Threads::Threads)
add_executable(fiber_pinning_pic_test fiber/pinning_test.cc)
target_compile_options(fiber_pinning_pic_test PRIVATE -O2 -fPIC)
target_link_libraries(fiber_pinning_pic_test PRIVATE sylar_flags fiber_pinning_programs sylar::io sylar::hook GTest::gtest_main)
set_target_properties(fiber_pinning_pic_test PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
set_target_properties(fiber_pinning_pic_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
sylar_add_tests(fiber_pinning_pic_test Pic.)

# What is left of a frame depends on the compiler and its level, not on this tree's: each that there is takes part.
sylar_test(fiber/overflow_test LINKS sylar::io)
foreach(compiler g++ clang++)
  string(REPLACE "++" "xx" overflow_compiler ${compiler})
  find_program(SYLAR_OVERFLOW_${overflow_compiler} ${compiler})
  if(SYLAR_OVERFLOW_${overflow_compiler})
    foreach(level O0 O2 O2_unprobed)
      string(REPLACE "_unprobed" ";-fno-stack-clash-protection" overflow_flags ${level})
      set(overflow_object ${CMAKE_CURRENT_BINARY_DIR}/overflow_${overflow_compiler}_${level}.o)
      add_custom_command(OUTPUT ${overflow_object}
        COMMAND ${SYLAR_OVERFLOW_${overflow_compiler}} -std=c++20 -fPIC -fstack-clash-protection -${overflow_flags}
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
if(TARGET example_fibers)
  add_test(NAME Gdb.TraceOfAFiberEnds COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/gdb_trace_test.py $<TARGET_FILE:example_fibers>)
  set_tests_properties(Gdb.TraceOfAFiberEnds PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT} SKIP_RETURN_CODE 77)
endif()

# Objects that jump are not marked for CET, also where the compiler marks by default: compiled as it would do it, with the
# module's options behind. The second object shows that the mark is seen where it is.
find_program(SYLAR_READELF readelf)
if(SYLAR_READELF AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND NOT SYLAR_SANITIZE)
  add_library(fiber_cet_room OBJECT ${PROJECT_SOURCE_DIR}/sylar/fiber/context.cc)
  add_library(fiber_cet_marked OBJECT ${PROJECT_SOURCE_DIR}/sylar/fiber/context.cc)
  foreach(object fiber_cet_room fiber_cet_marked)
    target_compile_options(${object} PRIVATE -fcf-protection=full)
    target_link_libraries(${object} PRIVATE sylar::fiber Boost::context)
  endforeach()
  get_target_property(fiber_options sylar_fiber COMPILE_OPTIONS)
  target_compile_options(fiber_cet_room PRIVATE ${fiber_options})
  add_test(NAME Cet.ObjectsThatJumpAreNotMarked COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/cet_marks_test.py ${SYLAR_READELF}
    --marked $<TARGET_OBJECTS:fiber_cet_marked> --not-marked $<TARGET_OBJECTS:fiber_cet_room>
    $<TARGET_FILE:sylar_fiber> $<TARGET_FILE:sylar_sched>)
  set_tests_properties(Cet.ObjectsThatJumpAreNotMarked PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()
