// The settings of the process: by name, from YAML files.
//
//   static sylar::ConfigVar<int>::ptr g_port = sylar::Config::Lookup("server.port", 8080, "TCP port", sylar::inRange(1, 65535));
//   sylar::LoadResult result = sylar::Config::LoadFromConfDir("conf");
//
// Names are of a-z 0-9 . _ - and compared without case. Nested maps flatten to dotted names, "server: {port: 1}" is server.port,
// and every name that is registered takes the whole of what stands there. A setting that is made after a load takes what was
// loaded.
//
// A load is all or nothing: everything is read, converted and checked first; one mistake, and nothing changes. Then all
// values are committed, then listeners are told, in the order of the names. A name that is gone from the files keeps its value.
//
// Thread safety: all, from any thread, and in the child of a fork; loads are one after the other. May suspend: no. Loads read,
// parse and convert on a thread of their own, so a fiber needs no large stack for them; they block the calling thread meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sylar/config/checks.h"
#include "sylar/config/config_error.h"
#include "sylar/config/config_preview.h"
#include "sylar/config/config_var.h"

namespace sylar {

/// What a load does with names that no setting has.
enum class UnknownKeys {
  kReport,  ///< passes over them, logs them, and lists them in LoadResult::unknown
  kRefuse,  ///< takes them for errors, and logs nothing: the caller tells what LoadResult says
};

class Config {
 public:
  /// The setting `name`, made with `default_value` if there is none. Null, and an error in the log, if it exists with another
  /// type. `description` and `check` count only where it is made. Throws std::invalid_argument if the name has other bytes than
  /// those above, or `check` refuses the default. A value that was loaded for it before and does not fit is logged, and the
  /// default stays.
  template <class T, class FromStr = LexicalCast<std::string, T>, class ToStr = LexicalCast<T, std::string>>
  static typename ConfigVar<T, FromStr, ToStr>::ptr Lookup(const std::string& name, const T& default_value,
                                                           const std::string& description = "",
                                                           std::type_identity_t<ConfigCheck<T>> check = nullptr) {
    using Var = ConfigVar<T, FromStr, ToStr>;
    return typed<Var>(findOrMake(name, [&] { return std::make_shared<Var>(name, default_value, description, check); }));
  }

  /// The same if it exists, else null.
  template <class T, class FromStr = LexicalCast<std::string, T>, class ToStr = LexicalCast<T, std::string>>
  static typename ConfigVar<T, FromStr, ToStr>::ptr Lookup(const std::string& name) {
    return typed<ConfigVar<T, FromStr, ToStr>>(LookupBase(name));
  }

  /// The setting of that name, of whatever type, or null.
  static ConfigVarBase::ptr LookupBase(const std::string& name);

  /// Calls `visitor` with each setting that exists now, in the order of the names, outside all locks.
  static void Visit(const std::function<void(ConfigVarBase::ptr)>& visitor);

  /// Takes settings from a tree of yaml-cpp; no other thread may use the tree meanwhile. All mistakes and unknown names are
  /// logged.
  static LoadResult LoadFromYaml(const YAML::Node& root, UnknownKeys unknown = UnknownKeys::kReport);

  /// Takes settings from all files *.yml and *.yaml below the directory `path`, in the order of their paths, as one load.
  /// Symbolic links are followed; names that begin with a dot are passed over. A file whose text was taken before is checked, but
  /// taken again only with `force`: values that the program set since are kept. All mistakes and unknown names are logged, unless
  /// unknown names are refused.
  /// Mistakes are: what is no YAML, a name twice in one file or in two, a value that its type or check refuses, more than one
  /// document in a file, tags, tabs for indentation, complex keys, and the limits: 1 MiB a file, 16 MiB in 1000 files, depth 64,
  /// 100 000 values and 8 MiB of text a file, 1 000 000 values and 64 MiB in all, both counting what aliases repeat. A load that
  /// gets no memory is a mistake too. `validate` is asked last, and may refuse all of it.
  static LoadResult LoadFromConfDir(const std::string& path, bool force = false, UnknownKeys unknown = UnknownKeys::kReport,
                                    const ConfigValidator& validate = nullptr);

  /// `reason`, with the place and value that the last load had for the part `path` of the setting `name`: "", "[1].port", ".a.b".
  /// What a path names beyond what was loaded is passed over: the place is that of what contains it. For mistakes that show
  /// later; those that can be seen beforehand are a validator's.
  static ConfigError errorAt(const std::string& name, const std::string& path, const std::string& reason);

 private:
  using Make = std::function<LoadableVar::ptr()>;
  static ConfigVarBase::ptr findOrMake(const std::string& name, const Make& make);
  static void logOtherType(const ConfigVarBase& found, const std::string& wanted);

  template <class Var>
  static std::shared_ptr<Var> typed(const ConfigVarBase::ptr& found) {
    auto var = std::dynamic_pointer_cast<Var>(found);
    if (found != nullptr && var == nullptr) logOtherType(*found, TypeToName<typename Var::value_type>());
    return var;
  }
};

}  // namespace sylar
