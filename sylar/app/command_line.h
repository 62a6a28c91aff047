// Internal. What a service is asked on its command line.
#pragma once

#include <string>

namespace sylar {

struct CommandLine {
  std::string config_dir = "conf";
  bool check_config = false;  // say whether the folder is right, and end
  bool help = false;
  std::string error;  // what is wrong, and what would be right; empty: nothing

  /// Source: getopt_long(3).
  static CommandLine parse(int argc, char** argv);
  /// How to call `program`.
  static std::string usage(const std::string& program);
};

}  // namespace sylar
