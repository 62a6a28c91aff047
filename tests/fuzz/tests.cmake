# RG-07
# One program per fuzz target. In the fuzz preset libFuzzer drives it (scripts/fuzz.sh); elsewhere it replays its corpus as a test.
function(sylar_fuzz name)
  add_executable(fuzz_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}_fuzz.cc)
  target_link_libraries(fuzz_${name} PRIVATE sylar_flags ${ARGN})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(SYLAR_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(fuzz_${name} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/replay_main.cc)
  if(SYLAR_SANITIZE)
    target_link_libraries(fuzz_${name} PRIVATE sylar_test_sanitizers)
  endif()
  add_test(NAME Fuzz.${name}CorpusIsClean COMMAND fuzz_${name} ${CMAKE_CURRENT_LIST_DIR}/corpus/${name})
  set_tests_properties(Fuzz.${name}CorpusIsClean PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endfunction()

if(NOT SYLAR_SANITIZE MATCHES thread)  # they have one
  sylar_fuzz(http_request sylar::http)
  sylar_fuzz(http_chunks sylar::http)
  sylar_fuzz(patterns sylar::web)
endif()
