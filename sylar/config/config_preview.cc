#include "sylar/config/config_preview.h"

#include <algorithm>
#include <string_view>

#include "sylar/config/config_registry.h"
#include "sylar/config/config_walk.h"
#include "sylar/config/yaml_node.h"

namespace sylar {
namespace {

/// Returns the part of `node` that `path` leads to, or the last existing part on the way there.
const YamlNode& descend(const YamlNode& node, std::string_view path) {
  if (path.empty()) return node;
  const bool index = path.front() == '[';
  const size_t end = std::min(index ? path.find(']') : path.find_first_of(".[", 1), path.size());
  const std::string_view step = path.substr(1, end - 1);
  const std::string_view rest = path.substr(std::min(end + (index ? 1 : 0), path.size()));
  size_t number = 0;
  for (const YamlNode& item : node.items) {
    if (index ? std::to_string(number++) == step : item.key == step) return descend(item, rest);
  }
  return node;
}

}  // namespace

ConfigError ConfigPreview::errorAt(const std::string& name, const std::string& path, const std::string& reason) const {
  ConfigError error{"", 0, name + path, "", reason};
  for (const ConfigSource& source : m_loaded) {
    const YamlNode* const setting = findSetting(*source.root, name);
    if (setting == nullptr) continue;
    BadValue bad(reason);
    bad.setNode(descend(*setting, path));
    error = {source.name, bad.line(), name + path, bad.value(), reason};
  }
  return error;
}

std::shared_ptr<const void> ConfigPreview::preparedFor(const ConfigVarBase& var) const {
  const auto found = std::find_if(m_prepared.begin(), m_prepared.end(), [&](const auto& each) { return each.var.get() == &var; });
  return found == m_prepared.end() ? nullptr : found->value;
}

}  // namespace sylar
