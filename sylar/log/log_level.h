// The five levels of a log line, with sylar's numbers.
//
// Thread safety: all.
#pragma once

#include <string>

namespace sylar {

class LogLevel {
 public:
  /// A logger or appender lets through what is at least as severe as its level; UNKNOW lets all through. The names of sylar's
  /// tutorial stand for the level that every threshold treats alike.
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

  /// "DEBUG" ... "FATAL"; anything else is "UNKNOW".
  static const char* ToString(Level level);
  /// All of a name in lower or all in upper case; anything else is UNKNOW.
  static Level FromString(const std::string& text);
};

}  // namespace sylar
