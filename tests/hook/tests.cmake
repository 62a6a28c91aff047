sylar_test(hook / same_as_libc_transfer_test LINKS sylar::sylar sylar::hook TIMEOUT 30)
    sylar_test(hook / same_as_libc_socket_test LINKS sylar::sylar sylar::hook TIMEOUT 30)
