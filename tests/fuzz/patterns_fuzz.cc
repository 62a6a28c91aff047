// Patterns of a Router, a line each, an empty line, and requests, such as "GET host/a". Promises: what is no pattern is refused by
// its exception alone; what a request finds is what a matcher that knows no tree says, and the most specific of it.
#include <algorithm>
#include <stdexcept>

#include "../web/slow_matcher.h"
#include "../web/table.h"
#include "fuzz_target.h"
#include "sylar/check.h"
#include "sylar/http/char_class.h"

namespace {

using namespace sylar::http;

std::string_view takeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool slowlyMatches(const Pattern& pattern, HttpMethod method, std::string_view host, std::string_view path) {
  const bool names_method =
      !pattern.method() || pattern.method() == method || (pattern.method() == HttpMethod::GET && method == HttpMethod::HEAD);
  const std::string_view text = pattern.method() ? trimmed(pattern.text()) : std::string_view(pattern.text());
  return names_method && (pattern.host().empty() || pattern.host() == host) &&
         test::matchesPath(text.substr(text.find('/')), path);
}

void ask(const test::Table& table, const std::vector<Pattern>& patterns, std::string_view request) {
  const size_t blank = std::min(request.find(' '), request.size());
  const HttpMethod method = toHttpMethod(request.substr(0, blank));
  const std::string_view target = request.substr(std::min(blank + 1, request.size()));
  const std::string host(target.substr(0, target.find('/')));
  const std::string path(target.substr(host.size()));
  const bool is_host = std::all_of(host.begin(), host.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!MethodSet::ordinary().has(method) || !is_host || path.empty()) return;
  const FoundRoute found = table.find(HttpMethodToString(method), path, host);
  SYLAR_CHECK(found.entry == nullptr || slowlyMatches(found.entry->pattern, method, host, path));
  for (const Pattern& other : patterns) {
    if (!slowlyMatches(other, method, host, path)) continue;
    SYLAR_CHECK(found.entry != nullptr);
    SYLAR_CHECK(found.entry->pattern.text() == other.text() || found.entry->pattern.relationTo(other) == Relation::kMoreSpecific);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  test::Table table;
  std::vector<Pattern> patterns;
  while (!input.empty()) {
    const std::string line(takeLine(input));
    if (line.empty()) break;
    try {
      table.add(line);
      patterns.emplace_back(line);
    } catch (const std::invalid_argument&) {
    }
  }
  while (!input.empty()) ask(table, patterns, takeLine(input));
  return 0;
}
