// Internal. The date of HTTP headers. Source: RFC 9110 section 5.6.7.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::http::detail {

/// Returns seconds since 1970 as "Sun, 06 Nov 1994 08:49:37 GMT".
///
/// Thread safety: from any thread. May suspend: no.
std::string httpDate(time_t time);

/// Returns the text of httpDate(), but formats it only once per second. Thread safety: one caller at a time.
class HttpDateCache {
 public:
  /// Returns the date of `time`. The view is valid until the next call for another second.
  std::string_view at(time_t time) {
    if (time != m_time) renew(time);
    return {m_text, sizeof m_text};
  }

 private:
  void renew(time_t time);

  time_t m_time = -1;
  char m_text[29] = {};
};

}  // namespace sylar::http::detail
