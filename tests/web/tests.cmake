sylar_tests(web LINKS sylar::web sylar::sylar sylar::hook FILES
  middleware router)
sylar_tests(web_parts ONE_THREAD LINKS sylar::web FILES
  pattern pattern_table)
sylar_with_uring(RELEASE web_tests)
if(NOT SYLAR_SANITIZE)  # it brings its own operator new, and so do the sanitizers
  sylar_test(web/router_steady_test LINKS sylar::web sylar::sylar sylar::hook)
endif()
