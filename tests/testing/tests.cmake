sylar_tests(testing LINKS sylar::testing FILES
  retry virtual_time virtual_time_refuses)
sylar_test(testing/virtual_time_race_test LINKS sylar::testing)
