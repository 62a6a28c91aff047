// Internal. Why a fiber could not start: the kernel has refused it memory.
#pragma once

#include "sylar/base/memory_refused.h"

namespace sylar::detail {

/// Notes what was refused. Thread safety: any thread.
void noteRefused(const char* call, int error) noexcept;
/// Returns what was refused last, in the process. Call it after a start has failed.
sys::MemoryRefused lastRefused() noexcept;

}  // namespace sylar::detail
