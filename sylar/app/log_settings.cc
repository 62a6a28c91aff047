#include "sylar/app/log_settings.h"

#include <string>
#include <string_view>

#include "sylar/app/library_setting.h"
#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/config.h"
#include "sylar/config/checks.h"
#include "sylar/config/fields.h"
#include "sylar/log.h"

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

struct LogErrors {
  OsMutex mutex;
  std::vector<ConfigError> last SYLAR_GUARDED_BY(mutex);  // the errors of the last change
};
LogErrors& logErrors() {
  static auto* const instance = new LogErrors;
  return *instance;
}

/// Converts the loggers' complaints ("logs[1].file: what is wrong") to errors, with the places that `at` finds.
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

/// Makes the loggers do what the setting says.
void applyLogSettings(const std::vector<LogDefine>& defines) {
  std::vector<ConfigError> errors = located(LoggerMgr::GetInstance()->apply(defines), Config::errorAt);
  for (const ConfigError& error : errors) log::error("config: {}", error.toString());
  const Lock lock(logErrors().mutex);
  logErrors().last.swap(errors);
}

const LogSetting& logSetting() {
  static const LogSetting::ptr setting = [] {
    auto made = librarySetting("logs", std::vector<LogDefine>{}, "the loggers, where their lines go, and which");
    made->setLive(true);
    made->addListener([](const auto&, const auto& defines) { applyLogSettings(defines); });
    return made;
  }();
  return *setting;
}

}  // namespace

void detail::makeLogSettings() { logSetting(); }

std::vector<ConfigError> detail::checkLogSettings(const ConfigPreview& next) {
  return located(LoggerMgr::GetInstance()->check(next.value(logSetting())),
                 [&](const auto&... place) { return next.errorAt(place...); });
}

std::vector<ConfigError> detail::logSettingErrors() {
  const Lock lock(logErrors().mutex);
  return logErrors().last;
}

}  // namespace sylar
