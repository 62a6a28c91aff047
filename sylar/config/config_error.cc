#include "sylar/config/config_error.h"

#include <fmt/format.h>

namespace sylar {

std::string ConfigError::toString() const {
  std::string text = file;
  if (line > 0) text += fmt::format(":{}", line);
  text += ": ";
  if (!key.empty()) text += key + ": ";
  if (!value.empty()) text += fmt::format("'{}': ", value);
  return text + reason;
}

std::string LoadResult::toString() const {
  std::string text;
  for (const auto* list : {&errors, &unknown}) {
    for (const ConfigError& error : *list) text += error.toString() + '\n';
  }
  return text;
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 60;
  std::string result;
  for (const char c : text) {
    if (result.size() >= kLongest) return result + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace sylar
