sylar_tests(base LINKS sylar::base FILES
  check clock fd log os_mutex processors signal_wait sys thread thread_mutex)
sylar_test(base/os_mutex_race_test LINKS sylar::base)
