#include "sylar/web/pattern_table.h"

#include <stdexcept>
#include <utility>

#include "sylar/web/path.h"

namespace sylar::http::detail {

static_assert(Router::kMostSegments == Pattern::kMostSegments);

namespace {

/// Returns the host of the request without its port.
std::string_view hostOf(const HttpRequest& request) {
  const std::string_view host = request.headers().find("host").value_or(std::string_view());
  const size_t colon = host.rfind(':');
  return colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos ? host.substr(0, colon) : host;
}

bool isPath(std::string_view text) { return text.starts_with('/'); }

bool hasPrefix(std::string_view path, const std::vector<Segment>& prefix) {
  PathSegments rest(path);
  for (const Segment& segment : prefix) {
    if (rest.atEnd()) return false;
    const std::string_view part = rest.next();
    if (segment.kind == Segment::Kind::kLiteral ? part != segment.text : part.empty()) return false;
  }
  return true;
}

}  // namespace

FoundRoute PatternTable::find(const HttpRequest& request, std::string_view path) const {
  FoundRoute found;
  if (!isPath(path)) return found;
  if (!m_hosts.empty()) {
    const auto tree = m_hosts.find(hostOf(request));
    if (tree != m_hosts.end()) tree->second.find(path, request.getMethod(), found);
  }
  if (found.entry == nullptr) m_any_host.find(path, request.getMethod(), found);
  return found;
}

const PatternTable::Chain& PatternTable::chain(const FoundRoute& found, std::string_view path) const {
  if (found.entry != nullptr) return m_groups[found.entry->group].chain;
  const Group* longest = &m_groups.front();
  for (const Group& group : m_groups) {
    if (group.prefix.size() > longest->prefix.size() && isPath(path) && hasPrefix(path, group.prefix)) longest = &group;
  }
  return longest->chain;
}

RouteTree& PatternTable::treeOf(const Pattern& pattern) { return pattern.host().empty() ? m_any_host : m_hosts[pattern.host()]; }

void PatternTable::add(const RouteEntryPtr& entry) {
  if (m_count == Router::kMostPatterns) throw std::length_error("Router: it has as many patterns as it may have");
  RouteTree& tree = treeOf(entry->pattern);
  if (const RouteEntry* const other = tree.findConflict(entry->pattern)) {
    throw std::invalid_argument("pattern \"" + entry->pattern.text() + "\" conflicts with \"" + other->pattern.text() +
                                "\": both match \"" + entry->pattern.exampleWith(other->pattern) +
                                "\", and neither is more specific");
  }
  tree.set(entry);
  ++m_count;
}

void PatternTable::replace(const RouteEntryPtr& entry) { treeOf(entry->pattern).set(entry); }

size_t PatternTable::addGroup(size_t parent, const std::string& prefix) {
  if (!prefix.empty() && !isPath(prefix)) throw std::invalid_argument("prefix \"" + prefix + "\": it does not begin with '/'");
  std::vector<Segment> segments = Pattern(prefix + '/').segments();
  segments.pop_back();  // the tail
  m_groups.push_back({std::move(segments), parent, {}, m_groups[parent].chain});
  return m_groups.size() - 1;
}

void PatternTable::use(size_t group, const std::shared_ptr<const Middleware>& middleware) {
  m_groups[group].own.push_back(middleware);
  for (size_t i = group; i < m_groups.size(); ++i) {
    Group& each = m_groups[i];
    each.chain = i == 0 ? Chain() : m_groups[each.parent].chain;
    each.chain.insert(each.chain.end(), each.own.begin(), each.own.end());
  }
}

}  // namespace sylar::http::detail
