#include "sylar/config/config_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sylar/base/ascii.h"
#include "sylar/config/type_name.h"

namespace sylar::detail {
namespace {

constexpr size_t kLongestName = 200;  // longer names are shortened in messages

/// Returns how many bytes must be changed, added or removed to turn `b` into `a`.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

/// Returns the first `count` parts of a dotted name.
std::string_view leadingParts(std::string_view name, ptrdiff_t count) {
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '.' && --count == 0) return name.substr(0, i);
  }
  return name;
}

}  // namespace

bool isConfigName(const std::string& name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string::npos;
}

const YamlNode* findSetting(const YamlNode& root, std::string_view name) {
  if (!root.isMap()) return nullptr;
  for (const YamlNode& item : root.items) {
    const std::string key = asciiLower(item.key);
    if (name == key) return &item;
    if (!name.starts_with(key + '.')) continue;
    if (const YamlNode* found = findSetting(item, name.substr(key.size() + 1))) return found;
  }
  return nullptr;
}

void ConfigWalk::visit(const YamlNode& root, const std::string& file, size_t source) {
  m_file = file;
  m_source = source;
  if (root.isMap()) {
    for (const YamlNode& item : root.items) visitNode(item, asciiLower(item.key), false);
  } else if (root.kind != YamlNode::Kind::kNull) {
    fail(errors, root, "", "expected a map (lines of 'key: value'), found " + root.describe());
  }
}

/// `covered` is true if a setting above has taken this node.
void ConfigWalk::visitNode(const YamlNode& node, const std::string& name, bool covered) {
  if (!covered && !isConfigName(name)) return fail(errors, node, printable(name), "a name is of a-z 0-9 . _ - only");
  if (const auto var = m_vars.find(name); var != m_vars.end()) {
    if (!once(node, name)) return;
    prepare(var->second, node);
    covered = true;
  }
  const std::string below = firstBelow(name);
  if (below.empty()) {
    if (!covered) refuseUnknown(node, name);
  } else if (node.isMap()) {
    for (const YamlNode& item : node.items) visitNode(item, name + '.' + asciiLower(item.key), covered);
  } else if (!covered && node.kind != YamlNode::Kind::kNull) {
    fail(errors, node, name, fmt::format("expected a map with settings such as {}, found {}", below, node.describe()));
  }
}

bool ConfigWalk::once(const YamlNode& node, const std::string& name) {
  const auto [first, added] = m_seen.emplace(name, FileLine{m_file, node.key_line});
  if (added) return true;
  fail(errors, node, name, fmt::format("is set twice, first at {}:{}; keep one of them", first->second.file, first->second.line));
  return false;
}

void ConfigWalk::prepare(const LoadableVar::ptr& var, const YamlNode& node) {
  try {
    if (auto value = ConfigAccess::prepare(*var, node)) prepared.push_back({var, std::move(value), m_source});
  } catch (const BadValue& bad) {
    const int line = bad.line() > 0 ? bad.line() : node.key_line;
    errors.push_back({m_file, line, var->getName() + printable(bad.path()), bad.value(), bad.what()});
  }
}

void ConfigWalk::refuseUnknown(const YamlNode& node, const std::string& name) {
  std::vector<ConfigError>& list = m_policy == UnknownKeys::kRefuse ? errors : unknown;
  if (list.size() > LoadResult::kMost) return;  // the search for similar names takes time
  const std::string meant = similar(name);
  fail(list, node, name, "no setting has this name" + (meant.empty() ? "" : "; did you mean " + meant + '?'));
}

std::string ConfigWalk::firstBelow(const std::string& name) const {
  const auto below = m_vars.lower_bound(name + '.');
  return below != m_vars.end() && below->first.starts_with(name + '.') ? below->first : "";
}

std::string ConfigWalk::similar(const std::string& name) const {
  if (name.size() > kLongestName) return "";
  const ptrdiff_t parts = std::count(name.begin(), name.end(), '.') + 1;
  std::string best;
  size_t smallest = name.size() / 4 + 2;
  for (const auto& [candidate, var] : m_vars) {
    const size_t distance = editDistance(name, leadingParts(candidate, parts));
    if (distance >= smallest) continue;
    smallest = distance;
    best = candidate;
  }
  return best;
}

void ConfigWalk::fail(std::vector<ConfigError>& list, const YamlNode& node, const std::string& name, std::string reason) const {
  if (list.size() > LoadResult::kMost) return;
  const int line = node.key_line > 0 ? node.key_line : node.line;
  list.push_back({m_file, line, name.size() > kLongestName ? name.substr(0, kLongestName) + "..." : name,
                  node.isScalar() ? printable(node.text) : "", std::move(reason)});
}

}  // namespace sylar::detail
