// Keys expire by the time of day.
#pragma once

#include <chrono>
#include <cstdint>

namespace ttlkv {

/// Returns the unix time. Tests pass one of their own, because the library's virtual time leaves the time of day alone.
///
/// Thread safety: any thread.
class WallClock {
 public:
  virtual ~WallClock() = default;
  virtual int64_t nowMs() const = 0;
};

class SystemWallClock final : public WallClock {
 public:
  int64_t nowMs() const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  }
};

}  // namespace ttlkv
