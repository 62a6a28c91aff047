sylar_tests(http LINKS sylar::http sylar::sylar sylar::hook sylar::testing FILES
  buffers char_run chunk_decoder glob message object_pool request_reader response_writer server server_route server_stream servlet
  verdict virtual_time)
sylar_test(http/server_race_test LINKS sylar::sylar sylar::hook)
sylar_with_uring(RELEASE http_tests)
sylar_with_uring(http_server_race_test)
if(NOT SYLAR_SANITIZE)  # they bring their own operator new, and so do the sanitizers
  sylar_test(http/steady_memory_test LINKS sylar::http)
  sylar_test(http/steady_test LINKS sylar::sylar sylar::hook)
endif()
