// Internal. Where debug builds look at each fiber that is about to be suspended. Elsewhere there is nothing.
#pragma once

namespace sylar {

struct FiberCore;

#ifdef SYLAR_DEBUG_LOCKS
/// Who looks: set before main by the hooks, which know what locks are held.
using SuspendCheck = void (*)(const FiberCore& core);
inline constinit SuspendCheck g_suspend_check = nullptr;

inline void checkSuspend(const FiberCore& core) {
  if (g_suspend_check != nullptr) g_suspend_check(core);
}
#else
inline void checkSuspend(const FiberCore&) {}
#endif

}  // namespace sylar
