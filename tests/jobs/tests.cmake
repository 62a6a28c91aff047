# The replicas of examples/jobs: their parts, their stores against real servers, and the whole of them while they are killed.
if(TARGET jobs)
  find_package(nlohmann_json REQUIRED)
  sylar_tests(jobs LINKS jobs_parts sylar::testing FILES dead_sweep jobs memory_store parts request)
  sylar_test(jobs/jobs_race_test LINKS jobs_parts sylar::testing)

  # A server takes seconds to start, so its tests are run by one process.
  foreach(each redis_store redis_damage postgres_store leadership)
    add_executable(jobs_${each}_test ${CMAKE_CURRENT_LIST_DIR}/${each}_test.cc)
    target_link_libraries(jobs_${each}_test PRIVATE sylar_flags jobs_parts sylar::testing sylar::hook GTest::gtest_main)
    if(SYLAR_SANITIZE)
      target_link_libraries(jobs_${each}_test PRIVATE sylar_test_sanitizers)
    endif()
    sylar_test_path(jobs_${each}_test SYLAR_SERVERS ${PROJECT_SOURCE_DIR}/tests/integration/servers.py)
    set_target_properties(jobs_${each}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    add_test(NAME Jobs.${each} COMMAND jobs_${each}_test)
    set_tests_properties(Jobs.${each} PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
  endforeach()

  add_executable(jobs_receiver ${CMAKE_CURRENT_LIST_DIR}/receiver.cc)
  target_link_libraries(jobs_receiver PRIVATE sylar_flags sylar::sylar nlohmann_json::nlohmann_json)
  set_target_properties(jobs_receiver PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  foreach(each redis postgres)
    add_test(NAME Jobs.faults_${each}
      COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/faults_test.py $<TARGET_FILE:jobs> $<TARGET_FILE:jobs_receiver> ${each})
    set_tests_properties(Jobs.faults_${each} PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
  endforeach()

  add_test(NAME Jobs.api COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/api_test.py $<TARGET_FILE:jobs> $<TARGET_FILE:jobs_receiver>)
  set_tests_properties(Jobs.api PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

  add_test(NAME Jobs.damage COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/damage_test.py $<TARGET_FILE:jobs> $<TARGET_FILE:jobs_receiver>)
  set_tests_properties(Jobs.damage PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

  if(NOT SYLAR_SANITIZE)  # they show what the script, HAProxy and a browser do; the replicas are the other tests' matter
    add_test(NAME Jobs.cluster COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/cluster_test.py $<TARGET_FILE:jobs>)
    add_test(NAME Jobs.page COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/page_test.py $<TARGET_FILE:jobs>)
    set_tests_properties(Jobs.cluster Jobs.page PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
    set_tests_properties(Jobs.page PROPERTIES LABELS nightly)
  endif()

  add_test(NAME Jobs.ConfigIsRight COMMAND jobs -c ${PROJECT_SOURCE_DIR}/examples/jobs/config --check-config)
  set_tests_properties(Jobs.ConfigIsRight PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()
