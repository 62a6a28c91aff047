// Internal. Builds a tree of YamlNodes from events, whatever sends them. Checks the limits of the tree, and that keys are plain
// words and differ.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/config/config_error.h"
#include "sylar/config/plain_text.h"
#include "sylar/config/yaml_limits.h"
#include "sylar/config/yaml_node.h"

namespace sylar::detail {

/// Thrown to end reading because a limit was exceeded or the rest has no meaning.
struct Ends {
  int line;
  std::string reason;
};

class TreeBuilder {
 public:
  TreeBuilder(const std::string& file, std::vector<ConfigError>& errors) : m_file(file), m_errors(errors) {}

  YamlNode take() { return std::move(m_root); }

  void error(int line, std::string value, std::string reason) {
    if (m_told++ > LoadResult::kMost) return;  // one more than is reported for all files together
    m_errors.push_back({m_file, line, path(), printable(value), std::move(reason)});
  }

  void begin(YamlNode::Kind kind, int line) {
    if (m_open.size() >= YamlLimits::kDepth) {
      throw Ends{line, fmt::format("nested deeper than {} levels", YamlLimits::kDepth)};
    }
    count({1, 0, 0}, line);
    m_open.emplace_back();
    m_open.back().node.kind = kind;
    m_open.back().node.line = line;
  }

  /// Ends the collection that was begun last, and returns its node in the tree, or null if it was left out.
  const YamlNode* end() {
    YamlNode node = std::move(m_open.back().node);
    m_open.pop_back();
    return place(std::move(node));
  }

  const YamlNode* leaf(YamlNode::Kind kind, std::string text, int line) {
    count({awaitsKey() ? 0u : 1u, 0, text.size()}, line);
    YamlNode node;
    node.kind = kind;
    node.line = line;
    node.text = std::move(text);
    return place(std::move(node));
  }

  /// Adds a copy of `node`, which an alias stands for.
  const YamlNode* copy(const YamlNode& node, int line) {
    const YamlExtent extent = extentOf(node);
    if (m_open.size() + extent.depth > YamlLimits::kDepth) {
      throw Ends{line, fmt::format("nested deeper than {} levels", YamlLimits::kDepth)};
    }
    count(extent, line);
    return place(YamlNode(node));
  }

  void count(const YamlExtent& extent, int line) {
    m_nodes += extent.nodes;
    m_bytes += extent.bytes;
    if (m_nodes > YamlLimits::kNodes) {
      throw Ends{line, fmt::format("more than {} values, counting those that aliases repeat", YamlLimits::kNodes)};
    }
    if (m_bytes > YamlLimits::kTextBytes) {
      throw Ends{line, fmt::format("more than {} bytes of text, counting what aliases repeat", YamlLimits::kTextBytes)};
    }
  }

 private:
  struct Open {
    YamlNode node;
    bool has_key = false;  // in a map: the next event is the value
    bool drop = false;     // that value is left out
    std::string key;
    int key_line = 0;
    std::unordered_map<std::string, int> lines;  // the line of each key so far
  };

  bool awaitsKey() const { return !m_open.empty() && m_open.back().node.isMap() && !m_open.back().has_key; }

  const YamlNode* place(YamlNode node) {
    if (m_open.empty()) {
      m_root = std::move(node);
      return &m_root;
    }
    Open& open = m_open.back();
    if (awaitsKey()) {
      takeKey(open, node);
      return nullptr;
    }
    if (open.node.isMap()) {
      open.has_key = false;
      if (open.drop) return nullptr;
      node.key = std::move(open.key);
      node.key_line = open.key_line;
      if (node.kind == YamlNode::Kind::kNull) node.line = open.key_line;
    }
    open.node.items.push_back(std::move(node));
    return &open.node.items.back();
  }

  void takeKey(Open& open, YamlNode& node) {
    open.key.clear();
    open.drop = !node.isScalar();
    if (open.drop) error(node.line, "", "a key must be a plain word or a quoted string, not " + node.describe());
    open.key = std::move(node.text);
    open.key_line = node.line;
    open.has_key = true;
    if (open.drop) return;
    const auto [first, added] = open.lines.emplace(open.key, node.line);
    if (added) return;
    open.drop = true;
    error(node.line, "", fmt::format("this key is in the map twice, first in line {}; keep one of them", first->second));
  }

  /// Returns the path of the part that is being read, such as "servers[2].port".
  std::string path() const {
    std::string text;
    for (const Open& open : m_open) {
      if (open.node.kind == YamlNode::Kind::kSequence) {
        text += fmt::format("[{}]", open.node.items.size());
      } else if (open.has_key) {
        text += (text.empty() ? "" : ".") + printable(open.key);
      }
    }
    return text.size() <= kLongestPath ? text : text.substr(0, kLongestPath) + "...";
  }

  static constexpr size_t kLongestPath = 150;
  const std::string& m_file;
  std::vector<ConfigError>& m_errors;
  YamlNode m_root;
  std::vector<Open> m_open;
  size_t m_nodes = 0;
  size_t m_bytes = 0;
  size_t m_told = 0;
};

}  // namespace sylar::detail
