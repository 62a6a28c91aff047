// The values that a load is about to set. A validator uses it to find mistakes that no single setting can know of.
//
//   auto validate = [](const sylar::ConfigPreview& next) -> std::vector<sylar::ConfigError> {
//     if (next.value(*g_min) <= next.value(*g_max)) return {};
//     return {next.errorAt("pool.min", "", "must not be above pool.max")};
//   };
//   sylar::Config::LoadFromConfDir("conf", false, sylar::UnknownKeys::kReport, validate);
//
// Thread safety: valid only during the call of the validator, on its thread. May suspend: no.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/api.h"
#include "sylar/config/config_error.h"
#include "sylar/config/config_var.h"

namespace sylar {

namespace detail {
struct ConfigSource;
struct PreparedSetting;
}  // namespace detail

class SYLAR_API ConfigPreview {
 public:
  /// Made by the library. The object refers to both arguments.
  ConfigPreview(const std::vector<detail::PreparedSetting>& prepared, const std::vector<detail::ConfigSource>& loaded)
      : m_prepared(prepared), m_loaded(loaded) {}

  /// Returns a copy of the value that `var` has once the load is taken: the loaded value if there is one, else the present one.
  template <class T, class FromStr, class ToStr>
  T value(const ConfigVar<T, FromStr, ToStr>& var) const {
    const auto prepared = std::static_pointer_cast<const T>(preparedFor(var));
    return prepared == nullptr ? var.getValue() : *prepared;
  }

  /// Returns an error as Config::errorAt() does, with the places of what is being loaded.
  ConfigError errorAt(const std::string& name, const std::string& path, const std::string& reason) const;

 private:
  std::shared_ptr<const void> preparedFor(const ConfigVarBase& var) const;

  const std::vector<detail::PreparedSetting>& m_prepared;
  const std::vector<detail::ConfigSource>& m_loaded;
};

/// Checks a load as a whole and returns the mistakes. If there are any, nothing of the load is taken. Like the checks, it runs on
/// the load's own thread, outside the locks of settings. It runs after all of them, and only if nothing is wrong yet. It may look
/// up settings, and is called again if that made one; it must not load. An exception that it throws comes out of the load, which
/// has then changed nothing.
using ConfigValidator = std::function<std::vector<ConfigError>(const ConfigPreview& next)>;

}  // namespace sylar
