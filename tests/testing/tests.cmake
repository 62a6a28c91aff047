sylar_test(testing/virtual_time_test LINKS sylar::testing)
sylar_test(testing/virtual_time_refuses_test LINKS sylar::testing)
sylar_test(testing/virtual_time_race_test LINKS sylar::testing)
sylar_test(testing/retry_test LINKS sylar::testing)
