// The date of HTTP headers. Source: RFC 9110 section 5.6.7.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

namespace sylar::http {

/// Seconds since 1970 as "Sun, 06 Nov 1994 08:49:37 GMT".
///
/// Thread safety: from any thread. May suspend: no.
std::string httpDate(time_t time);

/// The same, formatted once a second. Thread safety: one caller at a time.
class HttpDateCache {
 public:
  /// The view ends with the next call for another second.
  std::string_view at(time_t time) {
    if (time != m_time) renew(time);
    return {m_text, sizeof m_text};
  }

 private:
  void renew(time_t time);

  time_t m_time = -1;
  char m_text[29] = {};
};

}  // namespace sylar::http
