#include "sylar/http/http_names.h"

#include <iterator>

#include "sylar/http/method_set.h"

namespace sylar::http {
namespace {

constexpr std::string_view kMethods[] = {
#define XX(number, name, text) text,
    SYLAR_HTTP_METHOD_MAP(XX)
#undef XX
};
static_assert(std::size(kMethods) == static_cast<size_t>(HttpMethod::INVALID_METHOD));

}  // namespace

HttpMethod toHttpMethod(std::string_view name) {
  for (size_t i = 0; i < std::size(kMethods); ++i) {
    if (kMethods[i] == name) return static_cast<HttpMethod>(i);
  }
  return HttpMethod::INVALID_METHOD;
}

HttpMethod StringToHttpMethod(const std::string& name) { return toHttpMethod(name); }

HttpMethod CharsToHttpMethod(const char* name) { return toHttpMethod(name); }

const char* HttpMethodToString(HttpMethod method) {
  const auto index = static_cast<size_t>(method);
  return index < std::size(kMethods) ? kMethods[index].data() : "<unknown>";
}

std::string MethodSet::toString() const {
  std::string names;
  for (size_t i = 0; i < std::size(kMethods); ++i) {
    if (has(static_cast<HttpMethod>(i))) names.append(names.empty() ? "" : ", ").append(kMethods[i]);
  }
  return names;
}

const char* HttpStatusToString(HttpStatus status) {
  switch (status) {
#define XX(code, name, text) \
  case HttpStatus::name: return text;
    SYLAR_HTTP_STATUS_MAP(XX)
#undef XX
  }
  return "<unknown>";
}

}  // namespace sylar::http
