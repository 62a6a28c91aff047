#include "sylar/web/route_tree.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sylar/web/path.h"

namespace sylar::http::detail {

namespace {

using Kind = Segment::Kind;

/// A fast order: texts of different length are compared without a look at their bytes.
bool isBefore(std::string_view a, std::string_view b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

/// Returns how general the method of a pattern is. Of two with the same path, the lower comes first.
int breadth(const Pattern& pattern) {
  if (!pattern.method()) return 2;
  return pattern.method() == HttpMethod::GET ? 1 : 0;
}

}  // namespace

struct RouteTree::Node {
  struct Edge {
    std::string segment;
    NodePtr node;
  };

  /// Returns the place of the edge of `segment`, or that where it would stand.
  auto place(std::string_view segment) const {
    return std::lower_bound(edges.begin(), edges.end(), segment,
                            [](const Edge& edge, std::string_view text) { return isBefore(edge.segment, text); });
  }
  const Node* child(std::string_view segment) const {
    const auto at = place(segment);
    return at != edges.end() && at->segment == segment ? at->node.get() : nullptr;
  }

  std::vector<Edge> edges;  // of literal segments, in the order of isBefore()
  NodePtr name;             // for {name}
  Entries here;             // of patterns that end here; those of fewer methods first, as in `tails`
  Entries tails;            // of patterns whose tail begins here
};

// ---- Lookup. ----------------------------------------------------------------------------------------------------------------

struct RouteTree::Lookup {
  const HttpMethod method;
  FoundRoute& found;

  bool take(const Entries& entries) {
    for (const RouteEntryPtr& entry : entries) {
      found.is_path_known = true;
      if (entry->methods.has(method)) {
        found.entry = entry.get();
        return true;
      }
      found.allowed.add(entry->methods);
    }
    return false;
  }

  bool descend(const Node& node, PathSegments rest) {
    if (rest.atEnd()) return take(node.here);
    const std::string_view segment = rest.next();
    const Node* const child = node.edges.empty() ? nullptr : node.child(segment);
    if (child != nullptr && descend(*child, rest)) return true;
    if (node.name != nullptr && !segment.empty() && descend(*node.name, rest)) return true;
    return take(node.tails);
  }
};

void RouteTree::find(std::string_view path, HttpMethod method, FoundRoute& found) const {
  if (m_root != nullptr) Lookup{method, found}.descend(*m_root, PathSegments(path));
}

// ---- Conflicts. -------------------------------------------------------------------------------------------------------------

const RouteEntry* RouteTree::findConflict(const Pattern& pattern) const {
  return m_root == nullptr ? nullptr : conflictAt(*m_root, pattern, 0);
}

const RouteEntry* RouteTree::conflictAmong(const Entries& entries, const Pattern& pattern) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const RouteEntryPtr& entry) {
    const Relation relation = pattern.relationTo(entry->pattern);
    return relation == Relation::kSame || relation == Relation::kOverlap;
  });
  return found == entries.end() ? nullptr : found->get();
}

/// Looks among the patterns that begin as the node says and may match what `pattern` matches from `depth` on.
const RouteEntry* RouteTree::conflictAt(const Node& node, const Pattern& pattern, size_t depth) {
  const std::vector<Segment>& segments = pattern.segments();
  if (depth == segments.size()) return conflictAmong(node.here, pattern);
  if (const RouteEntry* found = conflictAmong(node.tails, pattern)) return found;
  const Segment& segment = segments[depth];
  const auto below = [&](const Node& child) {
    return segment.kind == Kind::kTail ? conflictBelow(child, pattern) : conflictAt(child, pattern, depth + 1);
  };
  if (segment.kind == Kind::kLiteral) {
    const Node* const child = node.child(segment.text);
    if (const RouteEntry* found = child == nullptr ? nullptr : below(*child)) return found;
  } else {
    for (const Node::Edge& edge : node.edges) {
      if (const RouteEntry* found = below(*edge.node)) return found;
    }
  }
  return node.name == nullptr ? nullptr : below(*node.name);
}

/// Looks among all patterns that begin as the node says.
const RouteEntry* RouteTree::conflictBelow(const Node& node, const Pattern& pattern) {
  if (const RouteEntry* found = conflictAmong(node.here, pattern)) return found;
  if (const RouteEntry* found = conflictAmong(node.tails, pattern)) return found;
  for (const Node::Edge& edge : node.edges) {
    if (const RouteEntry* found = conflictBelow(*edge.node, pattern)) return found;
  }
  return node.name == nullptr ? nullptr : conflictBelow(*node.name, pattern);
}

// ---- Change. ----------------------------------------------------------------------------------------------------------------

void RouteTree::set(const RouteEntryPtr& entry) { m_root = with(m_root, entry, 0); }

void RouteTree::put(Entries& entries, const RouteEntryPtr& entry) {
  const auto same = std::find_if(entries.begin(), entries.end(),
                                 [&](const RouteEntryPtr& one) { return one->pattern.text() == entry->pattern.text(); });
  if (same != entries.end()) {
    *same = entry;
    return;
  }
  const auto wider = std::find_if(entries.begin(), entries.end(),
                                  [&](const RouteEntryPtr& one) { return breadth(one->pattern) > breadth(entry->pattern); });
  entries.insert(wider, entry);
}

/// Returns a copy of `node`, null being an empty one, that also has the entry, whose segments before `depth` lead to it.
RouteTree::NodePtr RouteTree::with(const NodePtr& node, const RouteEntryPtr& entry, size_t depth) {
  const auto copy = node == nullptr ? std::make_shared<Node>() : std::make_shared<Node>(*node);
  const std::vector<Segment>& segments = entry->pattern.segments();
  if (depth == segments.size()) {
    put(copy->here, entry);
  } else if (segments[depth].kind == Kind::kTail) {
    put(copy->tails, entry);
  } else if (segments[depth].kind == Kind::kName) {
    copy->name = with(copy->name, entry, depth + 1);
  } else {
    const std::string& text = segments[depth].text;
    const auto at = copy->edges.begin() + (std::as_const(*copy).place(text) - copy->edges.cbegin());
    const bool exists = at != copy->edges.end() && at->segment == text;
    NodePtr child = with(exists ? at->node : nullptr, entry, depth + 1);
    if (exists) {
      at->node = std::move(child);
    } else {
      copy->edges.insert(at, {text, std::move(child)});
    }
  }
  return copy;
}

}  // namespace sylar::http::detail
