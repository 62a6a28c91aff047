# CD-H15: none of these links the hooks.
sylar_tests(sched LINKS sylar::io FILES
  batch cancel detach idle join_order join_stop mailbox move permit run_queue scheduler spawn_queue stack_trimmer stop stop_in_fiber subclass
  timeouts work_guard)
sylar_tests(sched_race LINKS sylar::io FILES
  mailbox_race move_race park_race spawn_queue_race stop_deadline_race stop_race wakeup_race)
if("${SYLAR_SANITIZE}" MATCHES thread)
  sylar_test(sched/tsan_test LINKS sylar::sched)
endif()
if(NOT SYLAR_SANITIZE)  # it brings its own pthread_create, and so do the sanitizers
  sylar_test(sched/start_failure_test LINKS sylar::io ${CMAKE_DL_LIBS})
endif()
