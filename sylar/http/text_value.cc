// Converts the text of a header, parameter or cookie to a value.
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "sylar/http/http.h"

namespace sylar::http::detail {

namespace {

bool parse(std::string_view text, std::string& value) {
  value = text;
  return true;
}

bool parse(std::string_view text, bool& value) {
  const bool yes = text == "1" || text == "true";
  if (!yes && text != "0" && text != "false") return false;
  value = yes;
  return true;
}

bool parse(std::string_view text, auto& number) {
  std::remove_reference_t<decltype(number)> parsed{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc{} || stop != end) return false;
  number = parsed;
  return true;
}

}  // namespace

template <class T>
bool fromText(std::string_view text, T& value) {
  return parse(text, value);
}

template bool fromText(std::string_view, std::string&);
template bool fromText(std::string_view, bool&);
template bool fromText(std::string_view, char&);
template bool fromText(std::string_view, signed char&);
template bool fromText(std::string_view, unsigned char&);
template bool fromText(std::string_view, short&);
template bool fromText(std::string_view, unsigned short&);
template bool fromText(std::string_view, int&);
template bool fromText(std::string_view, unsigned&);
template bool fromText(std::string_view, long&);
template bool fromText(std::string_view, unsigned long&);
template bool fromText(std::string_view, long long&);
template bool fromText(std::string_view, unsigned long long&);
template bool fromText(std::string_view, float&);
template bool fromText(std::string_view, double&);
template bool fromText(std::string_view, long double&);

}  // namespace sylar::http::detail
