# CD-H15: none of these links the hooks.
sylar_tests(sched LINKS sylar::io FILES
  cancel detach idle join_stop mailbox move permit run_queue scheduler spawn_queue stop subclass timeouts
  work_guard)
sylar_test(sched/mailbox_race_test LINKS sylar::sched)
sylar_test(sched/spawn_queue_race_test LINKS sylar::sched)
sylar_test(sched/move_race_test LINKS sylar::io)
sylar_test(sched/park_race_test LINKS sylar::io)
sylar_test(sched/stop_race_test LINKS sylar::io)
sylar_test(sched/stop_deadline_race_test LINKS sylar::io)
sylar_test(sched/wakeup_race_test LINKS sylar::io)
if("${SYLAR_SANITIZE}" MATCHES thread)
  sylar_test(sched/tsan_test LINKS sylar::sched)
endif()
if(NOT SYLAR_SANITIZE)  # it brings its own pthread_create, and so do the sanitizers
  sylar_test(sched/start_failure_test LINKS sylar::io ${CMAKE_DL_LIBS})
endif()
