// The contents of log.yml as plain values. LoggerManager::apply() checks and applies them.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sylar {

struct LogRotation {
  uint64_t bytes = 0;  ///< a file that would become larger is moved to `file.1`, that to `file.2`, and so on; 0 for never
  uint32_t keep = 5;   ///< number of old files that are kept, at least 1

  friend bool operator==(const LogRotation&, const LogRotation&) = default;
};

struct LogAppenderDefine {
  std::string type = {};       ///< "StdoutLogAppender" or "FileLogAppender"
  std::string file = {};       ///< required for a FileLogAppender
  std::string formatter = {};  ///< a pattern, or empty for that of the logger; the tutorial's key for it is `pattern`
  std::string level = {};      ///< "debug" ... "fatal", or empty for all
  LogRotation rotation = {};   ///< for a FileLogAppender

  friend bool operator==(const LogAppenderDefine&, const LogAppenderDefine&) = default;
};

struct LogDefine {
  std::string name = {};       ///< required and unique
  std::string level = {};      ///< debug if empty
  std::string formatter = {};  ///< LogFormatter::kDefaultPattern if empty
  std::vector<LogAppenderDefine> appenders = {};

  friend bool operator==(const LogDefine&, const LogDefine&) = default;
};

}  // namespace sylar
