# The replicas of examples/jobs: their parts, their stores against real servers, and the whole of them while they are killed.
if(TARGET jobs)
  find_package(nlohmann_json REQUIRED)
  foreach(each jobs memory_store parts request)
    sylar_test(jobs/${each}_test LINKS jobs_parts sylar::testing)
  endforeach()
  foreach(each redis postgres)
    sylar_test(jobs/${each}_store_test LINKS jobs_parts sylar::testing)
    target_compile_definitions(jobs_${each}_store_test PRIVATE SYLAR_SERVERS="${PROJECT_SOURCE_DIR}/tests/integration/servers.py")
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

  add_test(NAME Jobs.ConfigIsRight COMMAND jobs -c ${PROJECT_SOURCE_DIR}/examples/jobs/config --check-config)
  set_tests_properties(Jobs.ConfigIsRight PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()
