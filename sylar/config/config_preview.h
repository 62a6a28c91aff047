// What a load is about to set, for a validator: what no single setting can know to be wrong.
//
//   auto validate = [](const sylar::ConfigPreview& next) -> std::vector<sylar::ConfigError> {
//     if (next.value(*g_min) <= next.value(*g_max)) return {};
//     return {next.errorAt("pool.min", "", "must not be above pool.max")};
//   };
//   sylar::Config::LoadFromConfDir("conf", false, sylar::UnknownKeys::kReport, validate);
//
// Thread safety: lives for the call of the validator, on its thread. May suspend: no.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/config/config_error.h"
#include "sylar/config/config_var.h"

namespace sylar {

struct ConfigSource;
struct PreparedSetting;

class ConfigPreview {
 public:
  /// Made by the library; it refers to both.
  ConfigPreview(const std::vector<PreparedSetting>& prepared, const std::vector<ConfigSource>& loaded)
      : m_prepared(prepared), m_loaded(loaded) {}

  /// A copy of the value that `var` has once the load is taken: what is loaded, else the present one.
  template <class T, class FromStr, class ToStr>
  T value(const ConfigVar<T, FromStr, ToStr>& var) const {
    const auto prepared = std::static_pointer_cast<const T>(preparedFor(var));
    return prepared == nullptr ? var.getValue() : *prepared;
  }

  /// As Config::errorAt, with the places of what is being loaded.
  ConfigError errorAt(const std::string& name, const std::string& path, const std::string& reason) const;

 private:
  std::shared_ptr<const void> preparedFor(const ConfigVarBase& var) const;

  const std::vector<PreparedSetting>& m_prepared;
  const std::vector<ConfigSource>& m_loaded;
};

/// Returns what is wrong: then nothing of the load is taken. It runs as checks do: after all of them and only if nothing is wrong
/// yet, on the load's own thread, outside the locks of settings. It may look settings up, and is then asked again; it must not
/// load. What it throws comes out of the load, which has changed nothing.
using ConfigValidator = std::function<std::vector<ConfigError>(const ConfigPreview& next)>;

}  // namespace sylar
