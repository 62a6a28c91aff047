// sylar's small helpers for threads, time, names of types, backtraces and search. This header also includes those for paths,
// texts, parameters, arrays, atomic values and limits of speed.
//
// Thread safety: all functions from any thread. May suspend: no.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "sylar/api.h"
#include "sylar/compat/atomic.h"
#include "sylar/compat/fiber_id.h"
#include "sylar/compat/fs_util.h"
#include "sylar/compat/params.h"
#include "sylar/compat/shared_array.h"
#include "sylar/compat/speed_limit.h"
#include "sylar/compat/string_util.h"
#include "sylar/config/type_name.h"

namespace sylar {

/// Returns the kernel id of the calling thread. Source: gettid(2).
SYLAR_API pid_t GetThreadId();
/// Returns the name of the calling thread; see sylar/thread.h.
SYLAR_API std::string GetThreadName();
/// Sets the name of the calling thread; see sylar/thread.h.
SYLAR_API void SetThreadName(const std::string& name);

/// Returns the wall-clock time since 1970, which can step. For logs and files, not for measuring.
SYLAR_API uint64_t GetCurrentMS();
SYLAR_API uint64_t GetCurrentUS();
/// Returns the milliseconds since some point in the past, on a clock that never steps (CLOCK_MONOTONIC).
SYLAR_API uint64_t GetElapsedMS();

/// Returns `ts` in local time, as strftime(3) writes it; "" if that is empty or longer than 255 bytes.
SYLAR_API std::string Time2Str(time_t ts = std::time(nullptr), const std::string& format = "%Y-%m-%d %H:%M:%S");
/// Returns the time that `text` gives in local time; 0 if `text` is not of the form `format`. Source: strptime(3), mktime(3).
SYLAR_API time_t Str2Time(const char* text, const char* format = "%Y-%m-%d %H:%M:%S");

/// Returns `text` with its ASCII letters in lower or upper case.
SYLAR_API std::string ToLower(const std::string& text);
SYLAR_API std::string ToUpper(const std::string& text);

/// Returns the name of this machine; "" if the kernel does not say.
SYLAR_API std::string GetHostName();
/// Returns the first IPv4 address of this machine, as "10.0.0.7", that is not in 127.0.0.0/8 and belongs to an interface that
/// is up; "" if there is none. Source: getifaddrs(3).
SYLAR_API std::string GetIPv4();

/// Appends the frames of the calling thread to `frames`, up to `size` of them, the innermost first and without the first
/// `skip`. Not for signal handlers.
SYLAR_API void Backtrace(std::vector<std::string>& frames, int size = 64, int skip = 1);
/// Returns the frames as one text, with one line for each, which begins with `prefix`.
SYLAR_API std::string BacktraceToString(int size = 64, int skip = 2, const std::string& prefix = "");

/// Returns the index of `value` in the sorted `array[length]`, or -(where it would be inserted + 1). Source: sylar.
template <class T>
int BinarySearch(const T* array, int length, const T& value) {
  const T* const found = std::lower_bound(array, array + length, value);
  const auto index = static_cast<int>(found - array);
  return index < length && !(value < *found) ? index : -(index + 1);
}

/// Appends `source` to `pieces` in pieces of `size`, of which the last may be shorter. A size of 0 counts as 1. Source: sylar.
template <class T>
void Slice(std::vector<std::vector<T>>& pieces, const std::vector<T>& source, size_t size) {
  size = std::max<size_t>(size, 1);
  for (size_t at = 0; at < source.size(); at += size) {
    const auto begin = source.begin() + static_cast<std::ptrdiff_t>(at);
    pieces.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, source.size() - at)));
  }
}

/// Returns all elements from `begin` to `end`, as streams write them, with `separator` in between.
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
