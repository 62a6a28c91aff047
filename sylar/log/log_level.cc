#include "sylar/log/log_level.h"

#include <cctype>
#include <string_view>

namespace sylar {
namespace {

struct Name {
  LogLevel::Level level;
  std::string_view upper;
};
constexpr Name kNames[] = {
    {LogLevel::DEBUG, "DEBUG"},   {LogLevel::INFO, "INFO"},   {LogLevel::WARN, "WARN"},
    {LogLevel::ERROR, "ERROR"},   {LogLevel::FATAL, "FATAL"},  // the usual five first, then the tutorial's
    {LogLevel::NOTICE, "NOTICE"}, {LogLevel::CRIT, "CRIT"},   {LogLevel::ALERT, "ALERT"},
};

}  // namespace

const char* LogLevel::ToString(Level level) {
  for (const Name& name : kNames) {
    if (name.level == level) return name.upper.data();
  }
  return "UNKNOW";
}

LogLevel::Level LogLevel::FromString(const std::string& text) {
  for (const Name& name : kNames) {
    std::string lower(name.upper);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (text == name.upper || text == lower) return name.level;
  }
  return UNKNOW;
}

}  // namespace sylar
