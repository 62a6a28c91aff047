sylar_test(sync/semaphore_test LINKS sylar::io sylar::sync)
sylar_test(sync/wait_group_test LINKS sylar::io sylar::sync)
sylar_test(sync/channel_test LINKS sylar::io sylar::sync)
sylar_test(sync/sync_race_test LINKS sylar::io sylar::sync)
