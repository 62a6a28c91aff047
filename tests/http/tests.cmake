sylar_tests(http LINKS sylar::http sylar::sylar sylar::hook sylar::testing FILES
  object_pool server server_route server_stream virtual_time)
sylar_tests(http_parts ONE_THREAD LINKS sylar::http FILES
  buffers char_run chunk_decoder glob message request_reader response_writer servlet verdict)
sylar_test(http/server_race_test LINKS sylar::sylar sylar::hook)
sylar_with_uring(RELEASE http_tests)
sylar_with_uring(http_server_race_test)
if(NOT SYLAR_SANITIZE)  # they bring their own operator new, and so do the sanitizers
  sylar_test(http/steady_memory_test LINKS sylar::http)
  sylar_test(http/steady_test LINKS sylar::sylar sylar::hook)
endif()
