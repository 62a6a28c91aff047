// Internal. The locks of all loggers and appenders. A fork takes them, so its child finds them free.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <vector>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/thread_mutex.h"

namespace sylar::detail {

/// Takes the locks in this order: first appenders, the youngest first, because one that forwards to another was made after it;
/// then loggers, whose locks are never held while another is taken.
class LogLocks {
 public:
  /// Returns the instance, which is made before any of the locks and never destroyed.
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

}  // namespace sylar::detail
