// Internal. The locks of all loggers and appenders, whoever made them: a fork takes them, and its child finds them free.
//
// Thread safety: all calls from any thread. Suspends: no.
#pragma once

#include <vector>

#include "sylar/base/mutex.h"
#include "sylar/base/os_mutex.h"

namespace sylar {

/// Taken in this order: appenders, the youngest first, since one that forwards to another was made after it; then loggers, whose
/// locks are never held over another.
class LogLocks {
 public:
  /// Never destroyed. Made before any of the locks.
  static LogLocks& get();

  void add(ThreadMutex& appender);
  void add(OsMutex& logger);
  void remove(ThreadMutex& appender);
  void remove(OsMutex& logger);

 private:
  LogLocks() = default;

  void beforeFork();
  void afterForkInParent();
  void afterForkInChild();

  OsMutex m_mutex;
  std::vector<ThreadMutex*> m_appenders SYLAR_GUARDED_BY(m_mutex);
  std::vector<OsMutex*> m_loggers SYLAR_GUARDED_BY(m_mutex);
};

}  // namespace sylar
