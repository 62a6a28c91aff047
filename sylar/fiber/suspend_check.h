// Internal. The place where debug builds check each fiber that is about to be suspended. In other builds it does nothing.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"

namespace sylar::detail {

struct FiberCore;

#ifdef SYLAR_DEBUG_LOCKS
/// The check. The hooks, which know what locks are held, set it before main.
using SuspendCheck = void (*)(const FiberCore& core);
inline constinit SuspendCheck g_suspend_check = nullptr;

inline void checkSuspend(const FiberCore& core) {
  if (g_suspend_check != nullptr && !sys::inForkedChild()) g_suspend_check(core);
}
#else
inline void checkSuspend(const FiberCore&) {}
#endif

}  // namespace sylar::detail
