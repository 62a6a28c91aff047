// Internal. The routes and the middleware of a Router and its groups, as one request sees them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/http/field_list.h"
#include "sylar/http/http.h"
#include "sylar/http/router.h"
#include "sylar/web/route_entry.h"
#include "sylar/web/route_tree.h"

namespace sylar::http::detail {

/// Thread safety: never changed once it is published. A change makes a copy, which shares the trees.
class PatternTable {
 public:
  using Chain = std::vector<std::shared_ptr<const Middleware>>;  // the outermost first

  /// Returns what the request, whose canonical path is `path`, leads to. Allocates nothing.
  FoundRoute find(const HttpRequest& request, std::string_view path) const;
  /// Returns the middleware around a route, or around the answer if there is none: that of the group with the longest prefix of
  /// `path`, then.
  const Chain& chain(const FoundRoute& found, std::string_view path) const;

  /// These throw as the functions of Router do. The group 0 is the router itself.
  void add(const RouteEntryPtr& entry);
  size_t addGroup(size_t parent, const std::string& prefix);

  /// Puts the entry in place of that of the same pattern.
  void replace(const RouteEntryPtr& entry);
  void use(size_t group, const std::shared_ptr<const Middleware>& middleware);

 private:
  struct Group {
    std::vector<Segment> prefix;
    size_t parent = 0;  // is less than the group's own number
    Chain own;
    Chain chain;  // that of the parent, then its own
  };

  RouteTree& treeOf(const Pattern& pattern);

  RouteTree m_any_host;
  std::map<std::string, RouteTree, NameLess> m_hosts;
  size_t m_count = 0;
  std::vector<Group> m_groups{1};
};

}  // namespace sylar::http::detail
