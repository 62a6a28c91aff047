// Texts, with sylar's interface.
//
// Thread safety: all, from any thread. May suspend: no.
#pragma once

#include <cstdarg>
#include <string>

namespace sylar {

class StringUtil {
 public:
  /// As printf(3) writes it; "" if the format is none.
  [[gnu::format(printf, 1, 2)]] static std::string Format(const char* format, ...);
  static std::string Formatv(const char* format, va_list arguments);

  /// All bytes but letters, digits and "-._~" as %XX; a space as '+' or %20. Source: RFC 3986, section 2.
  static std::string UrlEncode(const std::string& text, bool space_as_plus = true);
  /// The reverse; a '%' that no two hex digits follow stays as it is.
  static std::string UrlDecode(const std::string& text, bool space_as_plus = true);

  /// Without the bytes of `delimiters` at both ends, the left, or the right.
  static std::string Trim(const std::string& text, const std::string& delimiters = " \t\r\n");
  static std::string TrimLeft(const std::string& text, const std::string& delimiters = " \t\r\n");
  static std::string TrimRight(const std::string& text, const std::string& delimiters = " \t\r\n");

  /// In the encoding of the C locale that setlocale(3) chose; "" if there is a character that it does not have.
  static std::string WStringToString(const std::wstring& text);
  static std::wstring StringToWString(const std::string& text);
};

}  // namespace sylar
