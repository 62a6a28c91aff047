// The locks of settings and of the registry, and what a fork makes of them.
//
// Other threads may be in such a lock when one forks; in the child they are gone, and the lock would be taken for ever. So a fork
// waits for all of these locks, in the order in which a load takes them, and the child makes them anew.
#include <pthread.h>

#include <cstdint>
#include <iterator>
#include <new>

#include "sylar/base/os_mutex.h"
#include "sylar/config/config_registry.h"
#include "sylar/config/config_var.h"

namespace sylar {
namespace {

struct alignas(64) SettingLock {
  OsMutex mutex;
};
constinit SettingLock g_locks[32];

void beforeFork() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  configRegistry().mutex.lock();
  for (SettingLock& lock : g_locks) lock.mutex.lock();
}

void afterForkInParent() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  for (SettingLock& lock : g_locks) lock.mutex.unlock();
  configRegistry().mutex.unlock();
}

// A load may take long, and its casts may fork: the lock of loads is not waited for. It guards the order of loads and no data.
void afterForkInChild() {
  for (SettingLock& lock : g_locks) new (&lock) SettingLock;
  new (&configRegistry().mutex) OsMutex;
  new (&configRegistry().loading) OsMutex;
}

// Before main, when there is one thread. No memory for it: then children may hang.
[[gnu::constructor]] void followForks() { static_cast<void>(::pthread_atfork(beforeFork, afterForkInParent, afterForkInChild)); }

}  // namespace

OsMutex& detail::settingLock(const ConfigVarBase& var) {
  return g_locks[reinterpret_cast<uintptr_t>(&var) / 64 % std::size(g_locks)].mutex;
}

}  // namespace sylar
