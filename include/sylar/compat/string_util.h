// String functions, with sylar's interface.
//
// Thread safety: all functions from any thread. May suspend: no.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>

#include "sylar/api.h"

namespace sylar {

class SYLAR_API StringUtil {
 public:
  /// Returns the text that printf(3) would write, or "" if the format is invalid.
  [[gnu::format(printf, 1, 2)]] static std::string Format(const char* format, ...);
  static std::string Formatv(const char* format, va_list arguments);

  /// Encodes all bytes except letters, digits and "-._~" as %XX, and a space as '+' or %20. Source: RFC 3986, section 2.
  static std::string UrlEncode(const std::string& text, bool space_as_plus = true);
  /// Decodes what UrlEncode() encodes. A '%' that is not followed by two hex digits stays as it is.
  static std::string UrlDecode(const std::string& text, bool space_as_plus = true);

  /// Returns `text` without the bytes of `delimiters` at both ends, or at the left or the right end only.
  static std::string Trim(const std::string& text, const std::string& delimiters = " \t\r\n");
  static std::string TrimLeft(const std::string& text, const std::string& delimiters = " \t\r\n");
  static std::string TrimRight(const std::string& text, const std::string& delimiters = " \t\r\n");

  /// Converts to and from the encoding of the C locale that setlocale(3) chose. Returns "" if there is a character that it does
  /// not have.
  static std::string WStringToString(const std::wstring& text);
  static std::wstring StringToWString(const std::string& text);
};

/// Converts texts to numbers. A null pointer is an empty text.
class SYLAR_API TypeUtil {
 public:
  /// Returns the first byte, or 0 if there is none.
  static int8_t ToChar(const std::string& text);
  static int8_t ToChar(const char* text);
  /// Reads the beginning of the text as strtoll(3) and strtod(3) do. Returns 0 if it is not a number, and the nearest possible
  /// number if it is too large.
  static int64_t Atoi(const std::string& text);
  static int64_t Atoi(const char* text);
  static double Atof(const std::string& text);
  static double Atof(const char* text);
};

}  // namespace sylar
