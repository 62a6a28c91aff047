sylar_test(fiber/stack_test LINKS sylar::fiber)
sylar_test(fiber/fiber_lifetime_test LINKS sylar::fiber)
sylar_test(fiber/fiber_join_test LINKS sylar::io TIMEOUT 120)
