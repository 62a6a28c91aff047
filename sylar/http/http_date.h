// Internal. The date of HTTP headers. Source: RFC 9110 section 5.6.7.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

/// Returns seconds since 1970 as "Sun, 06 Nov 1994 08:49:37 GMT".
///
/// Thread safety: from any thread. May suspend: no.
std::string httpDate(time_t time);

/// Returns the text of httpDate(). Each thread keeps the last one, and formats it only for another second. The view is valid until
/// the thread's next call, so not across a wait.
std::string_view recentHttpDate(time_t time);

}  // namespace sylar::http::detail
