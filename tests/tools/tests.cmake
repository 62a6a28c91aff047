if(SYLAR_SANITIZE)  # none of it is compiled
  return()
endif()

# The modules and their directions hold, and the program that checks it finds what it should.
add_test(NAME Includes.AreInOrder COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_includes.py)
add_test(NAME Includes.CheckFindsEachFault COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/check_includes_test.py)
set_tests_properties(Includes.AreInOrder Includes.CheckFindsEachFault PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

# Ceilings.
add_test(NAME Counts.CeilingsHold COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/count_checks_test.py)  # scripts/count_checks.py
set_tests_properties(Counts.CeilingsHold PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

# What a change can reach.
add_test(NAME Changed.TestsThatAFileReaches COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/changed_tests_test.py)  # scripts/changed_tests.py
set_tests_properties(Changed.TestsThatAFileReaches PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

# What the guide shows is what the examples do, and its links lead somewhere.
add_test(NAME Guide.ShowsTheExamples COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_guide.py)
set_tests_properties(Guide.ShowsTheExamples PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})

# What says that all compared cases are run finds those that are not.
add_test(NAME Conformance.CheckFindsEachFault COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/conformance_test.py)
set_tests_properties(Conformance.CheckFindsEachFault PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
