# The replicas of examples/jobs: their parts, their stores against real servers, and the whole of them while they are killed.
if(TARGET jobs)
  foreach(each jobs memory_store parts request)
    sylar_test(jobs/${each}_test LINKS jobs_parts sylar::testing)
  endforeach()
  add_test(NAME Jobs.ConfigIsRight COMMAND jobs -c ${PROJECT_SOURCE_DIR}/examples/jobs/config --check-config)
  set_tests_properties(Jobs.ConfigIsRight PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()
