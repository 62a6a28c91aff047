sylar_tests(config ONE_THREAD LINKS sylar::config FILES
  config config_dir config_errors config_fork config_limits config_preview config_var env lexical_cast)
sylar_test(config/config_race_test LINKS sylar::config)
