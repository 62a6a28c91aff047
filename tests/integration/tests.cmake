add_executable(echo_client ${CMAKE_CURRENT_LIST_DIR}/echo_client.cc)
target_link_libraries(echo_client PRIVATE sylar_flags)
set_target_properties(echo_client PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_package(PkgConfig REQUIRED)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
sylar_test(integration/redis_test LINKS sylar::sylar sylar::hook PkgConfig::HIREDIS TIMEOUT 180)
sylar_test(integration/bounds_test LINKS sylar::sylar sylar::hook)
sylar_test(integration/echo_test LINKS sylar::sylar sylar::hook TIMEOUT 180)
if(TARGET example_echo_server)
  set(echo_messages 100000)
  if("${SYLAR_SANITIZE}" MATCHES thread)
    set(echo_messages 20000)
  endif()
  add_dependencies(integration_echo_test example_echo_server echo_client)
  target_compile_definitions(integration_echo_test PRIVATE
    SYLAR_ECHO_SERVER="$<TARGET_FILE:example_echo_server>" SYLAR_ECHO_CLIENT="$<TARGET_FILE:echo_client>"
    SYLAR_ECHO_MESSAGES="${echo_messages}")
endif()
