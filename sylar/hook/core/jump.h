// Internal. Jumps out of frames.
#pragma once

#include <atomic>
#include <cstdint>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Stands for the place of a jump where glibc does not tell it. Such a jump counts as one out of the handler.
constexpr uintptr_t kSomewhere = UINTPTR_MAX;

/// Called before each jump if it is set, with the stack pointer after it.
extern constinit std::atomic<void (*)(uintptr_t to)> g_before_jump;

}  // namespace sylar::detail
