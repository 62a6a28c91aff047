#include "sylar/web/path.h"

#include "sylar/http/char_class.h"

namespace sylar::http::detail {

CanonicalPath::CanonicalPath(std::string_view encoded) : m_text(encoded) {
  if (encoded.find('%') != std::string_view::npos) decode(encoded);
}

void CanonicalPath::decode(std::string_view encoded) {
  m_decoded.reserve(encoded.size() + 2);
  for (size_t i = 0; i < encoded.size(); ++i) {
    char byte = encoded[i];
    if (byte == '%') {
      if (encoded.size() - i > 2 && isChar(encoded[i + 1], kHexDigit) && isChar(encoded[i + 2], kHexDigit)) {
        byte = static_cast<char>(hexValue(encoded[i + 1]) << 4 | hexValue(encoded[i + 2]));
        i += 2;
      } else {
        m_malformed = true;
      }
      if (byte == '/' || byte == '%') {
        m_decoded.append(byte == '/' ? "%2F" : "%25");
        continue;
      }
    }
    m_decoded.push_back(byte);
  }
  m_text = m_decoded;
}

}  // namespace sylar::http::detail
