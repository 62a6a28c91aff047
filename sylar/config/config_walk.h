// Internal. Finds the settings that a tree of YAML names, and prepares their values without changing any setting.
//
// Thread safety: none. The conversion of values runs foreign code, so no lock may be held.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/config.h"
#include "sylar/config/yaml_node.h"

namespace sylar::detail {

using ConfigVars = std::map<std::string, LoadableVar::ptr>;

/// Gives loads access to the private functions of settings.
class ConfigAccess {
 public:
  using Value = std::shared_ptr<const void>;
  static Value prepare(const LoadableVar& var, const YamlNode& node) { return var.prepare(node); }
  static Value commit(LoadableVar& var, Value value) noexcept { return var.commit(std::move(value)); }
  static void notify(LoadableVar& var) { var.notify(); }
};

/// Returns true if `name`, which must be in lower case, is not empty and consists of a-z 0-9 . _ - only.
bool isConfigName(const std::string& name);

/// Returns the node of `root` that sets the setting `name`, or null if there is none.
const YamlNode* findSetting(const YamlNode& root, std::string_view name);

/// A setting and the value that a load is about to give it.
struct PreparedSetting {
  LoadableVar::ptr var;
  ConfigAccess::Value value;
  size_t source;
};

/// Walks over the sources of one load.
class ConfigWalk {
 public:
  ConfigWalk(const ConfigVars& vars, UnknownKeys policy) : m_vars(vars), m_policy(policy) {}

  /// Visits a tree; `source` becomes the PreparedSetting::source of its settings.
  void visit(const YamlNode& root, const std::string& file, size_t source);

  std::vector<PreparedSetting> prepared;  // settings whose value differs
  std::vector<ConfigError> errors;
  std::vector<ConfigError> unknown;

 private:
  struct FileLine {
    std::string file;
    int line;
  };

  void visitNode(const YamlNode& node, const std::string& name, bool covered);
  bool once(const YamlNode& node, const std::string& name);
  void prepare(const LoadableVar::ptr& var, const YamlNode& node);
  void refuseUnknown(const YamlNode& node, const std::string& name);
  std::string firstBelow(const std::string& name) const;
  std::string similar(const std::string& name) const;
  void fail(std::vector<ConfigError>& list, const YamlNode& node, const std::string& name, std::string reason) const;

  const ConfigVars& m_vars;
  const UnknownKeys m_policy;
  std::string m_file;
  size_t m_source = 0;
  std::unordered_map<std::string, FileLine> m_seen;
};

}  // namespace sylar::detail
