#include "sylar/log/log_yaml.h"

#include <fmt/format.h>

#include <algorithm>

namespace sylar::detail {

std::string yamlQuoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string yamlItem(std::string_view mapping, size_t indent) {
  std::string out;
  for (size_t at = 0; at < mapping.size();) {
    const size_t end = std::min(mapping.find('\n', at), mapping.size());
    out.append(indent, ' ') += at == 0 ? "- " : "  ";
    out.append(mapping, at, end - at) += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace sylar::detail
