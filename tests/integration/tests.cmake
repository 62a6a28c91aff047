add_executable(echo_client ${CMAKE_CURRENT_LIST_DIR}/echo_client.cc)
target_link_libraries(echo_client PRIVATE sylar_flags)
set_target_properties(echo_client PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
