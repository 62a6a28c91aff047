if(TARGET sylar_client AND TARGET sylar_tls)
  sylar_tests(client LINKS sylar::client sylar::tls sylar::sylar sylar::hook FILES
    client http_connection)
endif()
