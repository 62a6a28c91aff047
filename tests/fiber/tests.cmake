sylar_test(fiber/stack_test LINKS sylar::fiber)
