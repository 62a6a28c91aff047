// Internal. Jumps out of frames.
#pragma once

#include <atomic>

namespace sylar {

/// Called before each jump if it is set.
extern constinit std::atomic<void (*)()> g_before_jump;

}  // namespace sylar
