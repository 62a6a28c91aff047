#include "sylar/log/log_locks.h"

#include <pthread.h>

#include <new>

#include "sylar/log/log_formatter.h"
#include "sylar/log/log_writer.h"

namespace sylar::detail {

LogLocks& LogLocks::get() {
  static auto* const instance = [] {
    // Locks that are taken under an appender's lock (localtime_r's and the writers') register first, so a fork takes them after
    // it.
    const LogFormatter first;
    LogWriter::toStdout();
    auto* const made = new LogLocks;
    ::pthread_atfork([] { get().beforeFork(); }, [] { get().afterForkInParent(); }, [] { get().afterForkInChild(); });
    return made;
  }();
  return *instance;
}

void LogLocks::add(ThreadMutex& appender) {
  Lock lock(m_mutex);
  m_appenders.push_back(&appender);
}

void LogLocks::add(OsMutex& logger) {
  Lock lock(m_mutex);
  m_loggers.push_back(&logger);
}

void LogLocks::remove(ThreadMutex& appender) {
  Lock lock(m_mutex);
  std::erase(m_appenders, &appender);
}

void LogLocks::remove(OsMutex& logger) {
  Lock lock(m_mutex);
  std::erase(m_loggers, &logger);
}

void LogLocks::beforeFork() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  m_mutex.lock();
  for (auto appender = m_appenders.rbegin(); appender != m_appenders.rend(); ++appender) (*appender)->lock();
  for (OsMutex* const logger : m_loggers) logger->lock();
}

void LogLocks::afterForkInParent() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  for (OsMutex* const logger : m_loggers) logger->unlock();
  for (ThreadMutex* const appender : m_appenders) appender->unlock();
  m_mutex.unlock();
}

// Initialises the locks again, because their owner was the parent's thread.
void LogLocks::afterForkInChild() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  for (OsMutex* const logger : m_loggers) new (logger) OsMutex;
  for (ThreadMutex* const appender : m_appenders) new (appender) ThreadMutex;
  new (&m_mutex) OsMutex;
}

}  // namespace sylar::detail
