sylar_test(sched/mailbox_test LINKS sylar::sched)
sylar_test(sched/fresh_queue_test LINKS sylar::sched)
sylar_test(sched/mailbox_race_test LINKS sylar::sched)
sylar_test(sched/fresh_queue_race_test LINKS sylar::sched)
