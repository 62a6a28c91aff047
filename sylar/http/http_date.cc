#include "sylar/http/http_date.h"

#include <limits>

#include "sylar/base/tsan.h"

namespace sylar::http::detail {
namespace {

constexpr size_t kDateSize = sizeof "Sun, 06 Nov 1994 08:49:37 GMT" - 1;

// Not with strftime(), which would use the language of the process's locale.
void format(time_t time, char* out) {
  static constexpr char kDays[] = "SunMonTueWedThuFriSat";
  static constexpr char kMonths[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  tm parts{};
  gmtime_r(&time, &parts);
  const auto text = [&out](const char* from, size_t size) { out = std::char_traits<char>::copy(out, from, size) + size; };
  const auto number = [&out](int value, int digits) {
    for (int i = digits; i-- > 0; value /= 10) out[i] = static_cast<char>('0' + value % 10);
    out += digits;
  };
  text(kDays + 3 * parts.tm_wday, 3);
  text(", ", 2);
  number(parts.tm_mday, 2);
  text(" ", 1);
  text(kMonths + 3 * parts.tm_mon, 3);
  text(" ", 1);
  number(parts.tm_year + 1900, 4);
  text(" ", 1);
  number(parts.tm_hour, 2);
  text(":", 1);
  number(parts.tm_min, 2);
  text(":", 1);
  number(parts.tm_sec, 2);
  text(" GMT", 4);
}

}  // namespace

std::string httpDate(time_t time) {
  std::string text(kDateSize, '\0');
  format(time, text.data());
  return text;
}

std::string_view recentHttpDate(time_t time) {
  struct Recent {
    time_t time;
    char text[kDateSize];
  };
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Recent t_recent{std::numeric_limits<time_t>::min(), {}};
  const tsan::Exempt of_this_thread;
  if (time != t_recent.time) {
    format(time, t_recent.text);
    t_recent.time = time;
  }
  return {t_recent.text, kDateSize};
}

}  // namespace sylar::http::detail
