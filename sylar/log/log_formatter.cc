#include "sylar/log/log_formatter.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <iterator>
#include <new>
#include <sstream>

#include "sylar/base/log_sink.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/worker_local.h"
#include "sylar/log/logger.h"

namespace sylar {
namespace {

constexpr std::string_view kLetters = "mprctflFN";
constexpr char kItem = 1;   // instead of a letter, for an item of the program
constexpr char kPlace = 2;  // instead of a letter, for kPlacePattern
constexpr std::string_view kPlacePattern = "%f:%l";

template <class Number>
void appendNumber(std::string& out, Number number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

// localtime_r takes a lock of libc, which would stay taken in a forked child if one of our threads held it during the fork.
constinit OsMutex g_in_localtime;

void keepForksOutOfLocaltime() {
  static const int registered =
      ::pthread_atfork([]() SYLAR_NO_THREAD_SAFETY_ANALYSIS { g_in_localtime.lock(); },
                       []() SYLAR_NO_THREAD_SAFETY_ANALYSIS { g_in_localtime.unlock(); }, [] { new (&g_in_localtime) OsMutex; });
  static_cast<void>(registered);
}

std::string timeOf(const std::string& pattern, time_t second) {
  tm parts{};
  {
    Lock lock(g_in_localtime);
    ::localtime_r(&second, &parts);
  }
  char text[256];
  return std::string(text, std::strftime(text, sizeof text, pattern.c_str(), &parts));
}

// Caches the last formatted time: without its fraction it is the same for a whole second, and most programs have one pattern.
// Trivially destroyed, so that the destructors of statics may log.
struct LastTime {
  time_t second = -1;
  size_t pattern_size = 0;
  size_t text_size = 0;
  char pattern[64];
  char text[64];

  bool is(std::string_view asked, time_t when) const {
    return second == when && std::string_view(pattern, pattern_size) == asked;
  }
  void keep(std::string_view of, time_t when, std::string_view result) {
    if (of.size() > sizeof pattern || result.size() > sizeof text) return;
    second = when;
    pattern_size = of.copy(pattern, sizeof pattern);
    text_size = result.copy(text, sizeof text);
  }
};
constinit thread_local LastTime t_last_time{};

void appendTime(std::string& out, const std::string& pattern, const LogEvent& event) {
  const auto second = static_cast<time_t>(event.getTime());
  LastTime& last = detail::ofWorker(t_last_time);
  if (last.is(pattern, second)) {
    out.append(last.text, last.text_size);
    return;
  }
  const std::string text = timeOf(pattern, second);
  last.keep(pattern, second, text);
  out += text;
}

/// Appends the parts of the event's place that `letter` asks for.
void appendPlace(std::string& out, char letter, const LogEvent& event) {
  if (event.getFile()[0] == '\0') {
    out += '-';
    return;
  }
  if (letter != 'l') out += event.getFile();
  if (letter == kPlace) out += ':';
  if (letter != 'f') appendNumber(out, event.getLine());
}

void appendItem(std::string& out, LogFormatter::FormatItem& item, const std::shared_ptr<Logger>& logger, LogLevel::Level level,
                const LogEvent::ptr& event) {
  std::ostringstream text;
  item.format(text, logger, level, event);
  out += text.view();
}

}  // namespace

// The lock of localtime_r is registered before the LoggerManager's locks, so a fork takes it after those of appenders, which may
// hold theirs while they format.
LogFormatter::LogFormatter(const std::string& pattern, const std::map<char, FormatItem::ptr>& items) : m_pattern(pattern) {
  keepForksOutOfLocaltime();
  parse(items);
}

void LogFormatter::addText(std::string_view text) {
  if (m_parts.empty() || m_parts.back().letter != 0) m_parts.push_back({0});
  m_parts.back().text += text;
}

void LogFormatter::parse(const std::map<char, FormatItem::ptr>& items) {
  const std::string_view pattern = m_pattern;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '%') {
      const size_t end = std::min(pattern.find('%', at), pattern.size());
      addText(pattern.substr(at, end - at));
      at = end;
      continue;
    }
    const char letter = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (const auto own = items.find(letter); own != items.end()) {
      m_parts.push_back({kItem, {}, own->second});
      at += 2;
      continue;
    }
    if (letter == 'd') {
      at = parseTime(at);
      continue;
    }
    if (pattern.substr(at).starts_with(kPlacePattern) && !items.contains('l')) {
      m_parts.push_back({kPlace});
      at += kPlacePattern.size();
      continue;
    }
    if (letter == '%') {
      addText("%");
    } else if (letter == 'n') {
      addText("\n");
    } else if (letter == 'T') {
      addText("\t");
    } else if (letter != '\0' && kLetters.find(letter) != std::string_view::npos) {
      m_parts.push_back({letter});
    } else {
      m_error = true;
      addText(pattern.substr(at, 2));
    }
    at += 2;
  }
}

// Cuts the pattern of a time at its fractions: a part 'd' is for strftime, parts '3' '6' '9' are fractions with so many digits.
size_t LogFormatter::parseTime(size_t at) {
  const std::string_view pattern = m_pattern;
  std::string_view time = "%Y-%m-%d %H:%M:%S";
  size_t end = at + 2;
  if (end < pattern.size() && pattern[end] == '{') {
    const size_t close = pattern.find('}', end);
    if (close == std::string_view::npos) {
      m_error = true;
      addText(pattern.substr(at));
      return pattern.size();
    }
    if (close > end + 1) time = pattern.substr(end + 1, close - end - 1);
    end = close + 1;
  }
  size_t from = 0;
  for (size_t i = 0; i < time.size(); ++i) {
    if (time[i] != '%') continue;
    const bool fraction = i + 2 < time.size() && std::strchr("369", time[i + 1]) != nullptr && time[i + 2] == 'N';
    if (fraction) {
      if (i > from) m_parts.push_back({'d', std::string(time.substr(from, i - from))});
      m_parts.push_back({time[i + 1]});
      from = i + 3;
    }
    i += fraction ? 2 : 1;
  }
  if (from < time.size()) m_parts.push_back({'d', std::string(time.substr(from))});
  return end;
}

std::string LogFormatter::format(const std::shared_ptr<Logger>& logger, LogLevel::Level level, const LogEvent::ptr& event) const {
  std::string out;
  out.reserve(160);  // enough for most lines
  for (const Part& part : m_parts) {
    switch (part.letter) {
      case 0: out += part.text; break;
      case kItem: appendItem(out, *part.item, logger, level, event); break;
      case 'm': log::appendEscaped(out, event->getSS().view()); break;
      case 'p': out += LogLevel::ToString(level); break;
      case 'r': appendNumber(out, event->getElapse()); break;
      case 'c': log::appendEscaped(out, event->getLogger()->getName()); break;
      case 't': appendNumber(out, event->getThreadId()); break;
      case 'f':
      case 'l':
      case kPlace: appendPlace(out, part.letter, *event); break;
      case 'F': appendNumber(out, event->getFiberId()); break;
      case 'N': log::appendEscaped(out, event->getThreadName()); break;
      case 'd': appendTime(out, part.text, *event); break;
      case '3': fmt::format_to(std::back_inserter(out), "{:03}", event->getNanoseconds() / 1'000'000); break;
      case '6': fmt::format_to(std::back_inserter(out), "{:06}", event->getNanoseconds() / 1'000); break;
      case '9': fmt::format_to(std::back_inserter(out), "{:09}", event->getNanoseconds()); break;
    }
  }
  return out;
}

std::ostream& LogFormatter::format(std::ostream& out, const std::shared_ptr<Logger>& logger, LogLevel::Level level,
                                   const LogEvent::ptr& event) const {
  return out << format(logger, level, event);
}

}  // namespace sylar
