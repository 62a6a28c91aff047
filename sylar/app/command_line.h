// Internal. The command line of a service.
#pragma once

#include <string>

#include "sylar/base/internal.h"

namespace sylar::detail {

struct CommandLine {
  std::string config_dir = "conf";
  bool check_config = false;  // say whether the folder is right, then end
  bool help = false;
  std::string error;  // what is wrong and what would be right; empty if nothing is wrong

  /// Parses the command line. Source: getopt_long(3).
  static CommandLine parse(int argc, char** argv);
  /// Returns a text that tells how to call `program`.
  static std::string usage(const std::string& program);
};

}  // namespace sylar::detail
