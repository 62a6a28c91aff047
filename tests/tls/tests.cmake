if(TARGET sylar_tls)
  sylar_tests(tls LINKS sylar::tls sylar::sylar sylar::hook FILES
    ssl_socket tls_context)
  sylar_with_uring(RELEASE tls_tests)
endif()
