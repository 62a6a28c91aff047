// The settings of the process, which have names and are read from YAML files.
//
//   static sylar::ConfigVar<int>::ptr g_port = sylar::Config::Lookup("server.port", 8080, "TCP port", sylar::inRange(1, 65535));
//   sylar::LoadResult result = sylar::Config::LoadFromConfDir("conf");
//
// Names consist of a-z 0-9 . _ - and are compared without case. Nested maps flatten to dotted names, so "server: {port: 1}"
// sets server.port, and every registered name takes the whole value that stands there. A setting that is made after a load
// takes the value that was loaded.
//
// In a program that links the library's module app, as sylar::sylar does, the library's own settings exist from the first use
// of this class on (config/README.md).
//
// A load is all or nothing. Everything is read, converted and checked first, and if there is one mistake, nothing changes.
// Otherwise all values are committed, then listeners are called in the order of the names. A name that is gone from the files
// keeps its value.
//
// Thread safety: all calls from any thread, and in the child of a fork; loads run one after the other. May suspend: no. Loads
// read, parse and convert on a thread of their own, so a fiber needs no large stack for them; they block the calling thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "sylar/api.h"
#include "sylar/config/checks.h"
#include "sylar/config/config_error.h"
#include "sylar/config/config_preview.h"
#include "sylar/config/config_var.h"

namespace YAML {
class Node;
}

namespace sylar {

/// How a load treats names that no setting has.
enum class UnknownKeys {
  kReport,  ///< skips them, logs them, and lists them in LoadResult::unknown
  kRefuse,  ///< treats them as errors, and logs nothing because the caller reports LoadResult
};

/// Finds, makes and loads the settings of the process.
class SYLAR_API Config {
 public:
  /// Returns the setting `name`, and makes it with `default_value` if there is none. Returns null, and logs an error, if it
  /// exists with another type; the error names both types, where the setting was made, and where it is wanted. `description`
  /// and `check` count only where the setting is made. Throws std::invalid_argument if the name has other bytes than a-z 0-9 .
  /// _ - or `check` refuses the default. A value that was loaded for it before and does not fit is logged, and the default
  /// stays.
  template <class T, class FromStr = LexicalCast<std::string, T>, class ToStr = LexicalCast<T, std::string>>
  static typename ConfigVar<T, FromStr, ToStr>::ptr Lookup(const std::string& name, const T& default_value,
                                                           const std::string& description = "",
                                                           std::type_identity_t<ConfigCheck<T>> check = nullptr,
                                                           SourceLocation location = SourceLocation::here()) {
    using Var = ConfigVar<T, FromStr, ToStr>;
    return typed<Var>(findOrMake(name, [&] { return std::make_shared<Var>(name, default_value, description, check, location); }),
                      location);
  }

  /// Returns the setting `name` as above if it exists, otherwise null.
  template <class T, class FromStr = LexicalCast<std::string, T>, class ToStr = LexicalCast<T, std::string>>
  static typename ConfigVar<T, FromStr, ToStr>::ptr Lookup(const std::string& name,
                                                           SourceLocation location = SourceLocation::here()) {
    return typed<ConfigVar<T, FromStr, ToStr>>(LookupBase(name), location);
  }

  /// Returns the setting of that name, of whatever type, or null.
  static ConfigVarBase::ptr LookupBase(const std::string& name);

  /// Calls `visitor` with each setting that exists now, in the order of the names, outside all locks.
  static void Visit(const std::function<void(ConfigVarBase::ptr)>& visitor);

  /// Takes settings from a tree of yaml-cpp, whose <yaml-cpp/yaml.h> the program includes itself. No other thread may use the
  /// tree during the call. All mistakes and unknown names are logged.
  static LoadResult LoadFromYaml(const YAML::Node& root, UnknownKeys unknown = UnknownKeys::kReport);

  /// Takes settings from all files *.yml and *.yaml below the directory `path`, in the order of their paths, as one load.
  /// Symbolic links are followed; names that begin with a dot are skipped. A file whose text was taken before is checked, but
  /// taken again only with `force`, so that values that the program has set since are kept. All mistakes and unknown names are
  /// logged, unless unknown names are refused.
  ///
  /// Mistakes are text that is not YAML, a name twice in one file or in two, a value that its type or check refuses, more than
  /// one document in a file, tags, tabs for indentation, complex keys, and more than the limits allow. The limits are 1 MiB a
  /// file, 16 MiB in 1000 files, depth 64, 100 000 values and 8 MiB of text a file, 1 000 000 values and 64 MiB in all, both
  /// counting what aliases repeat. A load that gets no memory is a mistake as well. `validate` is asked last, and may refuse
  /// all of it.
  static LoadResult LoadFromConfDir(const std::string& path, bool force = false, UnknownKeys unknown = UnknownKeys::kReport,
                                    const ConfigValidator& validate = nullptr);
  /// Returns what LoadFromConfDir() would return, and takes nothing: no value is committed, and no listener is called.
  /// `changed` counts the settings that would have another value.
  static LoadResult CheckConfDir(const std::string& path, UnknownKeys unknown = UnknownKeys::kReport,
                                 const ConfigValidator& validate = nullptr);

  /// Returns an error with `reason`, and with the place and value that the last load had for the part `path` of the setting
  /// `name`, where `path` is such as "", "[1].port" or ".a.b". If `path` goes beyond what was loaded, the place is that of the
  /// part that contains it. Use it for mistakes that show later; those that can be seen beforehand belong in a validator.
  static ConfigError errorAt(const std::string& name, const std::string& path, const std::string& reason);

 private:
  using Make = std::function<LoadableVar::ptr()>;
  static ConfigVarBase::ptr findOrMake(const std::string& name, const Make& make);
  static void logOtherType(const ConfigVarBase& found, const std::string& wanted, const SourceLocation& location);

  template <class Var>
  static std::shared_ptr<Var> typed(const ConfigVarBase::ptr& found, const SourceLocation& location) {
    auto var = std::dynamic_pointer_cast<Var>(found);
    if (found != nullptr && var == nullptr) logOtherType(*found, TypeToName<typename Var::value_type>(), location);
    return var;
  }
};

}  // namespace sylar
