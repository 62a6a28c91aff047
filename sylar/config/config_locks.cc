// The locks of settings and of the registry, and their treatment in a fork.
//
// If another thread held such a lock during a fork, the lock would stay taken in the child, where that thread does not exist. So
// a fork waits for all of these locks, in the order in which a load takes them, and the child initialises them again.
#include <pthread.h>

#include <cstdint>
#include <iterator>
#include <new>

#include "sylar/base/os_mutex.h"
#include "sylar/config/config_registry.h"
#include "sylar/config/config_var.h"

namespace sylar::detail {
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

// A fork does not wait for the lock of loads, because a load may take long and its casts may fork. That lock guards no data, only
// the order of loads.
void afterForkInChild() {
  for (SettingLock& lock : g_locks) new (&lock) SettingLock;
  new (&configRegistry().mutex) OsMutex;
  new (&configRegistry().loading) OsMutex;
}

// Runs before main, when there is one thread. If there is no memory to register, children may hang. The registry is made here,
// because a signal handler may fork, and must not allocate.
[[gnu::constructor]] void followForks() {
  static_cast<void>(configRegistry());
  static_cast<void>(::pthread_atfork(beforeFork, afterForkInParent, afterForkInChild));
}

}  // namespace

OsMutex& settingLock(const ConfigVarBase& var) {
  return g_locks[reinterpret_cast<uintptr_t>(&var) / 64 % std::size(g_locks)].mutex;
}

}  // namespace sylar::detail
