// Internal. How large the YAML of a setting may be, and how large a tree is.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/config/yaml_node.h"

namespace sylar::detail {

struct YamlLimits {
  static constexpr size_t kBytes = 1 << 20;  // of one text
  static constexpr size_t kDepth = 64;       // levels of nesting, aliases resolved
  // Limits of one text, counting each copy that an anchor or an alias makes:
  static constexpr size_t kNodes = 100'000;
  static constexpr size_t kTextBytes = 8 << 20;  // keys and scalars
};

/// The size of a tree.
struct YamlExtent {
  size_t nodes = 0, depth = 0, bytes = 0;
};
inline YamlExtent extentOf(const YamlNode& node) {
  const bool collection = node.isMap() || node.kind == YamlNode::Kind::kSequence;
  YamlExtent extent{1, collection ? 1u : 0u, node.key.size() + node.text.size()};
  for (const YamlNode& item : node.items) {
    const YamlExtent inner = extentOf(item);
    extent.nodes += inner.nodes;
    extent.depth = std::max(extent.depth, inner.depth + 1);
    extent.bytes += inner.bytes;
  }
  return extent;
}

}  // namespace sylar::detail
