# Programs in which the n-th call of a kind fails.
function(sylar_faults_test path)
  sylar_test(${path} LINKS sylar::sylar sylar::hook)
  string(REPLACE "/" "_" name ${path})
  target_sources(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/faults/enumerate.cc ${CMAKE_CURRENT_SOURCE_DIR}/faults/injector.cc)
endfunction()

if(NOT SYLAR_SANITIZE MATCHES "thread")  # thousands of starts and stops; its races are those of the other tests
  sylar_faults_test(faults/sched_faults_test)
  sylar_faults_test(faults/io_faults_test)
  sylar_faults_test(faults/cold_faults_test)
endif()
