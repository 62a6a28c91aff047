// The five levels of a log line, with sylar's numbers.
//
// Thread safety: all functions from any thread.
#pragma once

#include <string>

#include "sylar/api.h"

namespace sylar {

class SYLAR_API LogLevel {
 public:
  /// A logger or appender lets through events that are at least as severe as its level; UNKNOW lets all through. The names from
  /// sylar's tutorial stand for the level that every threshold treats alike.
  enum Level {
    UNKNOW = 0,
    DEBUG = 1,
    INFO = 2,
    WARN = 3,
    ERROR = 4,
    FATAL = 5,
    NOTSET = UNKNOW,
    NOTICE = INFO,
    CRIT = ERROR,
    ALERT = ERROR
  };

  /// Returns "DEBUG" ... "FATAL", or "UNKNOW" for anything else.
  static const char* ToString(Level level);
  /// Returns the level for a name that is all in lower or all in upper case, or UNKNOW for anything else.
  static Level FromString(const std::string& text);
};

}  // namespace sylar
