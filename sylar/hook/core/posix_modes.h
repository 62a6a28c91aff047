// Internal. The settings under which calls that wait behave as the kernel's: hook.eintr and hook.close. They share a word, so a
// call that begins to wait looks at one, and nearly always finds nothing there.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"

namespace sylar::detail {

enum class PosixMode : uint8_t {
  kEintr = 1,  ///< HookEintr::kPosix
  kClose = 2,  ///< HookClose::kPosix
};

extern constinit std::atomic<uint8_t> g_posix_modes;

inline bool anyPosixMode() { return g_posix_modes.load(std::memory_order_relaxed) != 0; }
inline bool isOn(PosixMode mode) { return (g_posix_modes.load(std::memory_order_relaxed) & static_cast<uint8_t>(mode)) != 0; }
inline void setMode(PosixMode mode, bool on) {
  const auto bit = static_cast<uint8_t>(mode);
  on ? g_posix_modes.fetch_or(bit, std::memory_order_relaxed)
     : g_posix_modes.fetch_and(static_cast<uint8_t>(~bit), std::memory_order_relaxed);
}

}  // namespace sylar::detail
