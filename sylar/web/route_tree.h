// Internal. The tree in which the route of a path is found.
//
// A node stands for the segments that lead to it, and its children for one more. A lookup tries the child of the literal segment,
// then that of {name}, then the tails of the node, and goes back where that leads to nothing. Since no two patterns of a tree
// overlap without one being more specific, what it finds first is the most specific. It visits no node twice.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/http/http_names.h"
#include "sylar/http/method_set.h"
#include "sylar/web/route_entry.h"

namespace sylar::http::detail {

/// What a lookup has found.
struct FoundRoute {
  const RouteEntry* entry = nullptr;
  bool is_path_known = false;  // some pattern matches the path
  MethodSet allowed{};         // by these patterns, if there is no entry
};

/// The routes of one host. Copies share all nodes, which never change: what adds a route makes those on its way anew.
///
/// Thread safety: as a standard container; copies are independent.
class RouteTree {
 public:
  /// Adds to `found` what the canonical `path` (path.h) leads to. Allocates nothing.
  void find(std::string_view path, HttpMethod method, FoundRoute& found) const;

  /// Returns a route that matches the same requests as `pattern`, or with which it overlaps without one being more specific.
  /// Returns null if there is none. The host of `pattern` must be that of the tree.
  const RouteEntry* findConflict(const Pattern& pattern) const;
  /// Adds an entry, in place of one whose pattern has the same text. There must be no other conflict.
  void set(const RouteEntryPtr& entry);

 private:
  struct Node;
  struct Lookup;
  using NodePtr = std::shared_ptr<const Node>;
  using Entries = std::vector<RouteEntryPtr>;

  static NodePtr with(const NodePtr& node, const RouteEntryPtr& entry, size_t depth);
  static void put(Entries& entries, const RouteEntryPtr& entry);
  static const RouteEntry* conflictAmong(const Entries& entries, const Pattern& pattern);
  static const RouteEntry* conflictAt(const Node& node, const Pattern& pattern, size_t depth);
  static const RouteEntry* conflictBelow(const Node& node, const Pattern& pattern);

  NodePtr m_root;  // null: there is no route
};

}  // namespace sylar::http::detail
