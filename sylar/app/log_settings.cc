#include "sylar/app/log_settings.h"

#include <string>
#include <string_view>

#include "sylar/app/fields.h"
#include "sylar/config/checks.h"
#include "sylar/config/config.h"
#include "sylar/log/log.h"

namespace sylar {

template <class Visit>
void eachField(LogAppenderDefine& appender, Visit&& visit) {
  visit("type", appender.type);
  visit("file", appender.file);
  visit("formatter", appender.formatter);
  visit("pattern", appender.formatter);
  visit("level", appender.level);
  visit("max_bytes", appender.rotation.bytes);
  visit("max_files", appender.rotation.keep, inRange(1u, 1000u));
}

template <class Visit>
void eachField(LogDefine& logger, Visit&& visit) {
  visit("name", logger.name,
        [](const std::string& name) { return name.empty() ? "must name the logger: root, system, or one of your own" : ""; });
  visit("level", logger.level);
  visit("formatter", logger.formatter);
  visit("appenders", logger.appenders);
}

template <>
class LexicalCast<std::string, LogAppenderDefine> : public FieldsFromText<LogAppenderDefine> {};
template <>
class LexicalCast<LogAppenderDefine, std::string> : public FieldsToText<LogAppenderDefine> {};
template <>
class LexicalCast<std::string, LogDefine> : public FieldsFromText<LogDefine> {};
template <>
class LexicalCast<LogDefine, std::string> : public FieldsToText<LogDefine> {};

namespace {

using LogSetting = ConfigVar<std::vector<LogDefine>>;

const LogSetting::ptr& logSetting() {
  static const auto setting = Config::Lookup("logs", std::vector<LogDefine>{}, "the loggers, where their lines go, and which");
  return setting;
}

/// What the loggers complain of ("logs[1].file: what is wrong"), with the places that `at` knows.
template <class ErrorAt>
std::vector<ConfigError> located(const std::vector<std::string>& complaints, const ErrorAt& at) {
  std::vector<ConfigError> errors;
  for (const std::string& text : complaints) {
    const size_t path = std::string_view("logs").size();
    const size_t colon = text.find(": ");
    errors.push_back(at("logs", text.substr(path, colon - path), text.substr(colon + 2)));
  }
  return errors;
}

}  // namespace

void makeLogSettings() { logSetting(); }

std::vector<ConfigError> checkLogSettings(const ConfigPreview& next) {
  return located(LoggerMgr::GetInstance()->check(next.value(*logSetting())),
                 [&](const auto&... place) { return next.errorAt(place...); });
}

std::vector<ConfigError> applyLogSettings() {
  return located(LoggerMgr::GetInstance()->apply(logSetting()->getValue()), Config::errorAt);
}

}  // namespace sylar
