if(TARGET sylar_client)
  sylar_tests(client LINKS sylar::client $<TARGET_NAME_IF_EXISTS:sylar::tls> sylar::sylar sylar::hook FILES
    client http_connection)
endif()
