# The server of examples/ttlkv: its parts, the whole of it with real clients, and its replies beside those of a redis-server.
if(TARGET ttlkv)
  sylar_tests(ttlkv LINKS ttlkv_parts sylar::testing PkgConfig::HIREDIS FILES
    commands expirer expiry_heap glob memory pubsub request_reader server snapshot)
  sylar_test(ttlkv/keyspace_race_test LINKS ttlkv_parts sylar::testing PkgConfig::HIREDIS)
  sylar_test_path(ttlkv_tests TTLKV_REPLIES ${CMAKE_CURRENT_LIST_DIR}/replies.txt)

  # redis-py is a package of Debian, and so for its own Python.
  find_program(SYLAR_DEBIAN_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
  set(ttlkv_tests clients differential)
  if(NOT SYLAR_SANITIZE)  # bounds of memory, 10 000 connections
    list(APPEND ttlkv_tests faults)
  endif()
  foreach(each ${ttlkv_tests})
    add_test(NAME Ttlkv.${each} COMMAND ${SYLAR_DEBIAN_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/${each}_test.py $<TARGET_FILE:ttlkv>)
    set_tests_properties(Ttlkv.${each} PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
  endforeach()
  if(TEST Ttlkv.faults)
    set_tests_properties(Ttlkv.faults PROPERTIES RUN_SERIAL TRUE)
  endif()

  add_test(NAME Ttlkv.ConfigIsRight COMMAND ttlkv -c ${PROJECT_SOURCE_DIR}/examples/ttlkv/config --check-config)
  set_tests_properties(Ttlkv.ConfigIsRight PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

  # In the fuzz preset libFuzzer drives it; elsewhere it replays its corpus.
  if(SYLAR_SANITIZE MATCHES thread)  # it has one
    return()
  endif()
  add_executable(fuzz_ttlkv ${CMAKE_CURRENT_LIST_DIR}/ttlkv_fuzz.cc)
  target_link_libraries(fuzz_ttlkv PRIVATE sylar_flags ttlkv_parts GTest::gtest)
  set_target_properties(fuzz_ttlkv PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(SYLAR_FUZZ)
    target_link_options(fuzz_ttlkv PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_ttlkv PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../fuzz/replay_main.cc)
    if(SYLAR_SANITIZE)
      target_link_libraries(fuzz_ttlkv PRIVATE sylar_test_sanitizers)
    endif()
    add_test(NAME Fuzz.ttlkvCorpusIsClean COMMAND fuzz_ttlkv ${CMAKE_CURRENT_LIST_DIR}/corpus)
    set_tests_properties(Fuzz.ttlkvCorpusIsClean PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
  endif()
endif()
