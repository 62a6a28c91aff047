add_library(model_checker STATIC model/checker.cc)
target_link_libraries(model_checker PRIVATE sylar_flags PUBLIC sylar::sched)

sylar_test(model/checker_test LINKS model_checker)

set(model_sources model/model_check.cc model/house.cc model/scenarios_wait.cc model/scenarios_sleep.cc model/scenarios_stop.cc
  model/scenarios_fd.cc)
add_executable(model_check ${model_sources})
target_link_libraries(model_check PRIVATE sylar_flags model_checker)
set_target_properties(model_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
