// For tests of hook.close: posix: calls that wait for a number that is closed meanwhile, and what lets them end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/hook/support.h"

namespace sylar::test {

/// Sets hook.close: posix for as long as it lives.
struct PosixCloses {
  PosixCloses() { setHookClose(HookClose::kPosix); }
  ~PosixCloses() { setHookClose(HookClose::kWake); }
};

/// A call that waits.
struct StayingCall {
  int fd;                             ///< is closed while the call waits
  std::function<std::string()> call;  ///< what it gave
  std::function<void()> finish;       ///< lets it end
};

struct StayingCase {
  std::string name;
  StayingCall (*make)();
  friend void PrintTo(const StayingCase& one, std::ostream* os) { *os << one.name; }
};

std::vector<StayingCase> stayingCases();

/// Says what a call gave: its result and its errno, or the bytes that it has read.
inline std::string told(ssize_t result, const char* bytes = nullptr) {
  if (result < 0) return std::to_string(result) + " " + ::strerrorname_np(errno);
  return std::to_string(result) + (bytes != nullptr ? " " + std::string(bytes, static_cast<size_t>(result)) : "");
}
inline std::string toldRead(int fd) {
  char bytes[64];
  return told(::read(fd, bytes, sizeof bytes), bytes);
}

}  // namespace sylar::test
