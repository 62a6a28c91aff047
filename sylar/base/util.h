// sylar's small helpers: threads, time, names of types, backtraces, search. Paths are in fs_util.h, texts in string_util.h.
//
// Thread safety: all, from any thread. May suspend: no.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <sstream>
#include <string>
#include <typeinfo>
#include <vector>

namespace sylar {

/// Kernel id of the calling thread. Source: gettid(2).
pid_t GetThreadId();
/// Name of the calling thread; see sylar/base/thread.h.
std::string GetThreadName();
void SetThreadName(const std::string& name);

/// Wall-clock time since 1970: it can step. For logs and files, not for measuring.
uint64_t GetCurrentMS();
uint64_t GetCurrentUS();
/// Milliseconds since some point in the past, on a clock that never steps (CLOCK_MONOTONIC).
uint64_t GetElapsedMS();

/// `ts` in local time, as strftime(3) writes it; "" if that is empty or longer than 255 bytes.
std::string Time2Str(time_t ts = std::time(nullptr), const std::string& format = "%Y-%m-%d %H:%M:%S");
/// The reverse; 0 if `text` is not of that form. Source: strptime(3), mktime(3).
time_t Str2Time(const char* text, const char* format = "%Y-%m-%d %H:%M:%S");

/// `text` with its ASCII letters in lower or upper case.
std::string ToLower(const std::string& text);
std::string ToUpper(const std::string& text);

/// Name of this machine; "" if the kernel does not say.
std::string GetHostName();

/// Up to `size` frames of the calling thread, the innermost first, without the first `skip`. Not for signal handlers.
void Backtrace(std::vector<std::string>& frames, int size = 64, int skip = 1);
/// The same in one text, a line each, after `prefix`.
std::string BacktraceToString(int size = 64, int skip = 2, const std::string& prefix = "");

namespace detail {
std::string demangle(const char* name);
}

/// The name of a type, as C++ spells it. Lives for ever.
template <class T>
const char* TypeToName() {
  static const auto* const name = new std::string(detail::demangle(typeid(T).name()));
  return name->c_str();
}

/// Index of `value` in the sorted `array[length]`, or -(where it would be inserted + 1). Source: sylar.
template <class T>
int BinarySearch(const T* array, int length, const T& value) {
  const T* const found = std::lower_bound(array, array + length, value);
  const auto index = static_cast<int>(found - array);
  return index < length && !(value < *found) ? index : -(index + 1);
}

/// All from `begin` to `end`, as streams write them, with `separator` in between.
template <class Iterator>
std::string Join(Iterator begin, Iterator end, const std::string& separator) {
  std::ostringstream text;
  for (Iterator it = begin; it != end; ++it) {
    if (it != begin) text << separator;
    text << *it;
  }
  return text.str();
}

}  // namespace sylar
