# The rooms and their directions hold, and the program that checks it finds what it should.
add_test(NAME Includes.AreInOrder COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_includes.py)
add_test(NAME Includes.CheckFindsEachFault COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/check_includes_test.py)
set_tests_properties(Includes.AreInOrder Includes.CheckFindsEachFault PROPERTIES TIMEOUT 60)
