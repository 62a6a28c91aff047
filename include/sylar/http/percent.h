// Percent encoding. Source: RFC 3986 section 2.1; the `+` of forms: the URL standard, application/x-www-form-urlencoded.
//
// Thread safety: all functions from any thread. May suspend: no.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sylar/api.h"

namespace sylar::http {

/// Decodes a path once. Strict: returns nothing if a '%' is not followed by two hexadecimal digits.
SYLAR_API std::optional<std::string> percentDecode(std::string_view text);

/// Decodes a name or value of a query or form. A '+' is a space, and a '%' that begins no escape stands for itself.
SYLAR_API std::string formDecode(std::string_view text);

/// Encodes everything except letters, digits and "-._~".
SYLAR_API std::string percentEncode(std::string_view text);

}  // namespace sylar::http
