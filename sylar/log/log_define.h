// What log.yml says, as plain values. LoggerManager::apply checks it and makes it so.
//
// Thread safety: values.
#pragma once

#include <string>
#include <vector>

#include "sylar/log/log_file.h"

namespace sylar {

struct LogAppenderDefine {
  std::string type = {};       ///< "StdoutLogAppender" or "FileLogAppender"
  std::string file = {};       ///< of a FileLogAppender: required
  std::string formatter = {};  ///< a pattern; empty: that of the logger. The tutorial's key for it is `pattern`
  std::string level = {};      ///< "debug" ... "fatal"; empty: all
  LogRotation rotation = {};   ///< of a FileLogAppender

  friend bool operator==(const LogAppenderDefine&, const LogAppenderDefine&) = default;
};

struct LogDefine {
  std::string name = {};       ///< required, and only once
  std::string level = {};      ///< empty: debug
  std::string formatter = {};  ///< empty: LogFormatter::kDefaultPattern
  std::vector<LogAppenderDefine> appenders = {};

  friend bool operator==(const LogDefine&, const LogDefine&) = default;
};

}  // namespace sylar
