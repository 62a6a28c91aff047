#include "sylar/compat/string_util.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

namespace sylar {
namespace {

int hexValue(char c) {
  if ('0' <= c && c <= '9') return c - '0';
  if ('a' <= c && c <= 'f') return c - 'a' + 10;
  if ('A' <= c && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool isUnreserved(char c) {
  return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

}  // namespace

std::string StringUtil::Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = Formatv(format, arguments);
  va_end(arguments);
  return text;
}

std::string StringUtil::Formatv(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  std::string text(static_cast<size_t>(std::max(size, 0)), '\0');
  if (size > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

std::string StringUtil::UrlEncode(const std::string& text, bool space_as_plus) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (isUnreserved(c)) {
      encoded += c;
    } else if (c == ' ' && space_as_plus) {
      encoded += '+';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::string StringUtil::UrlDecode(const std::string& text, bool space_as_plus) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hexValue(text[i + 1]) >= 0 && hexValue(text[i + 2]) >= 0;
    if (escape) {
      decoded += static_cast<char>(hexValue(text[i + 1]) * 16 + hexValue(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' && space_as_plus ? ' ' : text[i];
    }
  }
  return decoded;
}

std::string StringUtil::Trim(const std::string& text, const std::string& delimiters) {
  return TrimRight(TrimLeft(text, delimiters), delimiters);
}

std::string StringUtil::TrimLeft(const std::string& text, const std::string& delimiters) {
  return text.substr(std::min(text.find_first_not_of(delimiters), text.size()));
}

std::string StringUtil::TrimRight(const std::string& text, const std::string& delimiters) {
  return text.substr(0, text.find_last_not_of(delimiters) + 1);
}

std::string StringUtil::WStringToString(const std::wstring& text) {
  const size_t size = std::wcstombs(nullptr, text.c_str(), 0);
  if (size == static_cast<size_t>(-1)) return "";
  std::string result(size, '\0');
  std::wcstombs(result.data(), text.c_str(), size);
  return result;
}

std::wstring StringUtil::StringToWString(const std::string& text) {
  const size_t size = std::mbstowcs(nullptr, text.c_str(), 0);
  if (size == static_cast<size_t>(-1)) return L"";
  std::wstring result(size, L'\0');
  std::mbstowcs(result.data(), text.c_str(), size);
  return result;
}

int8_t TypeUtil::ToChar(const std::string& text) { return ToChar(text.c_str()); }
int8_t TypeUtil::ToChar(const char* text) { return text == nullptr ? int8_t{0} : static_cast<int8_t>(*text); }
int64_t TypeUtil::Atoi(const std::string& text) { return Atoi(text.c_str()); }
int64_t TypeUtil::Atoi(const char* text) { return text == nullptr ? 0 : std::strtoll(text, nullptr, 10); }
double TypeUtil::Atof(const std::string& text) { return Atof(text.c_str()); }
double TypeUtil::Atof(const char* text) { return text == nullptr ? 0 : std::strtod(text, nullptr); }

}  // namespace sylar
