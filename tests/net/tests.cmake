sylar_tests(net LINKS sylar::net sylar::testing FILES
  forked_child inherited_listeners lookup peer_scope socket socket_close tcp_server tcp_server_accept)
sylar_tests(net_race LINKS sylar::net FILES
  socket_race tcp_server_race)
sylar_with_uring(RELEASE net_tests)
sylar_test(net/address_test LINKS sylar::net)
sylar_with_uring(net_race_tests)
sylar_test(net/tcp_server_idle_test LINKS sylar::net)
sylar_counts_queue_operations(net_tcp_server_idle_test)
if(NOT SYLAR_SANITIZE MATCHES "thread")  # it brings its own operator new
  sylar_test(net/tcp_server_faults_test LINKS sylar::net)
  target_sources(net_tcp_server_faults_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/faults/injector.cc)
endif()
if(TARGET example_tcp_echo AND NOT SYLAR_SANITIZE)  # a sanitizer's runtime makes system calls of its own
  add_test(NAME Request.CostsOneReceiveAndOneSend COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/request_trace_test.py $<TARGET_FILE:example_tcp_echo>)
  set_tests_properties(Request.CostsOneReceiveAndOneSend PROPERTIES TIMEOUT ${SYLAR_TEST_LIMIT})
endif()
