sylar_tests(compat LINKS sylar::compat sylar::sync sylar::io sylar::hook FILES
  fs_util params speed_limit string_util util)
