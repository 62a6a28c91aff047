sylar_test(testing/virtual_time_test LINKS sylar::testing)
