add_library(model_checker STATIC model/checker.cc)
target_link_libraries(model_checker PRIVATE sylar_flags PUBLIC sylar::sched)

sylar_test(model/checker_test LINKS model_checker)
