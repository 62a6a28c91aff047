#include "sylar/log/log_writer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/log_sink.h"
#include "sylar/log/last_words.h"
#include "sylar/thread.h"

namespace sylar::detail {
namespace {

constexpr size_t kChunkBytes = 64 << 10;             // limit of one write of more than one line
constexpr auto kPatience = std::chrono::seconds(5);  // longest wait for a stuck device
constexpr auto kForkPatience = std::chrono::milliseconds(100);
constexpr int64_t kCrashPauseNs = 200'000;  // between two checks whether all is written

constinit std::atomic<bool> g_exiting{false};

template <class... Args>
void complain(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    log::writeToStderr(log::Level::kError, fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::bad_alloc&) {
    log::noMemory();
  }
}

}  // namespace

// All writers, for exit and fork. Never destroyed, because the destructors of statics may log.
struct LogWriters {
  struct Entry {
    std::shared_ptr<LogWriter> writer;
    std::weak_ptr<LogWriter> handle;
  };
  OsMutex mutex;
  std::vector<Entry> all SYLAR_GUARDED_BY(mutex);

  static LogWriters& get() {
    static auto* const instance = [] {
      auto* const made = new LogWriters;
      std::atexit([] {
        g_exiting.store(true, std::memory_order_relaxed);
        LogWriter::flushAll(Deadline::after(kPatience));
      });
      ::pthread_atfork([] { get().beforeFork(); }, [] { get().afterForkInParent(); }, [] { get().afterForkInChild(); });
      return made;
    }();
    return *instance;
  }

  /// Removes the writer if it is no longer used; returns true if it is removed.
  bool release(LogWriter& writer) {
    std::shared_ptr<LogWriter> released;  // destroyed outside the lock
    Lock lock(mutex);
    const auto at = std::ranges::find(all, &writer, [](const Entry& entry) { return entry.writer.get(); });
    if (at == all.end()) return true;
    if (!at->handle.expired() || !writer.end()) return false;
    released = std::move(at->writer);
    all.erase(at);
    return true;
  }

  /// Runs in a signal handler, whatever its thread was doing: it waits for no lock that this thread holds, and allocates nothing.
  static void writeLastWords() {
    static constinit std::atomic<uint64_t> s_crashes{0};
    const uint64_t crash = s_crashes.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::atomic<uint32_t> never{0};
    const Deadline deadline = Deadline::after(kPatience);
    for (int64_t now = steadyClock().nowNs(); now < deadline.ns(); now = steadyClock().nowNs()) {
      if (get().written(crash)) return;
      sys::futexWait(never, 0, now + kCrashPauseNs);
    }
  }

  /// Checks once whether all writers have written their lines.
  bool written(uint64_t crash) {
    if (mutex.heldByThisThread()) return true;  // this thread crashed under the lock
    if (!mutex.tryLock()) return false;
    size_t missing = 0;
    for (const Entry& entry : all) missing += entry.writer->written(crash) ? 0 : 1;
    mutex.unlock();
    return missing == 0;
  }

  void beforeFork() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    LogWriter::flushAll(Deadline::after(kForkPatience));
    mutex.lock();
    for (const auto& [writer, handle] : all) {
      writer->m_start.lock();
      writer->m_mutex.lock();
    }
  }
  void afterForkInParent() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& [writer, handle] : all) {
      writer->m_mutex.unlock();
      writer->m_start.unlock();
    }
    mutex.unlock();
  }
  void afterForkInChild() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& [writer, handle] : all) writer->forgetThread();
    std::erase_if(all, [](const Entry& entry) { return entry.handle.expired(); });  // only the parent has their threads
    new (&mutex) OsMutex;                                                           // its owner was the parent's thread
  }
};

std::shared_ptr<LogWriter> LogWriter::toStdout() { return get("", {}, kDefaultQueueBytes); }

std::shared_ptr<LogWriter> LogWriter::toFile(const std::string& path, LogRotation rotation, size_t queue_bytes) {
  return get(LogFile::absolute(path), rotation, queue_bytes);
}

std::shared_ptr<LogWriter> LogWriter::get(std::string path, LogRotation rotation, size_t queue_bytes) {
  LogWriters& writers = LogWriters::get();
  Lock lock(writers.mutex);
  auto at = std::ranges::find(writers.all, path, [](const auto& entry) -> const std::string& { return entry.writer->m_path; });
  if (at == writers.all.end()) {
    std::shared_ptr<LogWriter> writer(new LogWriter(std::move(path), queue_bytes));
    at = writers.all.insert(at, {std::move(writer), {}});
  }
  std::shared_ptr<LogWriter> handle = at->handle.lock();
  if (handle == nullptr) {
    handle = std::shared_ptr<LogWriter>(at->writer.get(), [writer = at->writer](LogWriter*) { writer->retire(); });
    at->handle = handle;
  }
  Lock state(handle->m_mutex);
  handle->m_rotation = rotation;
  return handle;
}

bool LogWriter::flushAll(Deadline deadline) {
  std::vector<std::shared_ptr<LogWriter>> writers;
  {
    Lock lock(LogWriters::get().mutex);
    for (const auto& [writer, handle] : LogWriters::get().all) writers.push_back(writer);
  }
  return std::ranges::count_if(writers, [&](const auto& writer) { return !writer->flush(deadline); }) == 0;
}

LogWriter::LogWriter(std::string path, size_t queue_bytes)
    : m_path(std::move(path)), m_queue_bytes(queue_bytes), m_file(m_path) {}

// Called when the last handle is gone. That may be on a thread that logs, so it does not wait for the device.
void LogWriter::retire() {
  const bool done = !m_running.load(std::memory_order_acquire) && LogWriters::get().release(*this);
  if (!done && startThread()) wake();  // the writer's thread releases it
}

bool LogWriter::end() {
  Lock lock(m_mutex);
  m_gone = m_queue.empty() && m_asked == m_answered.load(std::memory_order_relaxed);
  return m_gone;
}

void LogWriter::append(std::string line) noexcept {
  try {
    Lock lock(m_mutex);
    if (!m_queue.empty() && m_bytes + line.size() > m_queue_bytes) {
      ++m_dropped;
      m_lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const size_t size = line.size() + sizeof(std::string);
    m_queue.push_back(std::move(line));
    m_bytes += size;
    const bool first = m_queue.size() == 1;
    lock.unlock();
    if ((first || !m_running.load(std::memory_order_acquire)) && startThread()) wake();
  } catch (const std::bad_alloc&) {
    m_lost.fetch_add(1, std::memory_order_relaxed);
    log::noMemory();
  }
  if (g_exiting.load(std::memory_order_relaxed)) flush(Deadline::after(kPatience));
}

bool LogWriter::flush(Deadline deadline) {
  uint32_t ticket;
  {
    Lock lock(m_mutex);
    if (m_gone) return true;
    if (m_queue.empty() && !m_reopen && !m_running.load(std::memory_order_acquire)) return true;
    ticket = ++m_asked;
  }
  if (!startThread()) return false;
  wake();
  for (;;) {
    const uint32_t answered = m_answered.load(std::memory_order_acquire);
    if (static_cast<int32_t>(answered - ticket) >= 0) return true;
    if (steadyClock().nowNs() >= deadline.ns()) return false;
    sys::futexWait(m_answered, answered, deadline.ns());
  }
}

// The first check of a crash asks for a flush. Other threads may ask for more flushes then, which are waited for as well.
bool LogWriter::written(uint64_t crash) {
  if (m_mutex.heldByThisThread()) return true;  // this thread crashed under the lock
  if (!m_mutex.tryLock()) return false;
  const bool at_rest = m_queue.empty() && !m_running.load(std::memory_order_acquire);
  const bool asks = !at_rest && m_crash < crash;
  if (asks) {
    m_crash = crash;
    ++m_asked;
  }
  const bool answered = m_answered.load(std::memory_order_acquire) == m_asked;
  m_mutex.unlock();
  if (asks) wake();
  return at_rest || answered;
}

int LogWriter::reopen() {
  {
    Lock lock(m_mutex);
    m_reopen = true;
  }
  if (!flush(Deadline::after(kPatience))) return -ETIMEDOUT;
  return m_reopen_error.load(std::memory_order_relaxed);
}

void LogWriter::wake() {
  m_woken.fetch_add(1, std::memory_order_release);
  sys::futexWake(m_woken, 1);
}

bool LogWriter::startThread() noexcept {
  if (m_running.load(std::memory_order_acquire)) return true;
  writeBeforeCrash(&LogWriters::writeLastWords);
  Lock lock(m_start);
  if (m_running.load(std::memory_order_relaxed)) return true;
  try {
    const Thread thread([self = shared_from_this()] { self->run(); }, "log");  // the thread outlives its Thread
    m_running.store(true, std::memory_order_release);
    return true;
  } catch (const std::exception& error) {
    complain("log: no thread to write {}: {}", m_path, error.what());
    return false;
  }
}

// Runs in a forked child, before it has a second thread.
void LogWriter::forgetThread() SYLAR_NO_THREAD_SAFETY_ANALYSIS {
  new (&m_start) OsMutex;  // their owner was the parent's thread
  new (&m_mutex) OsMutex;
  m_queue.clear();  // the parent writes these lines
  m_bytes = 0;
  m_dropped = 0;
  m_running.store(false, std::memory_order_relaxed);
}

void LogWriter::run() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  for (;;) {
    const uint32_t woken = m_woken.load(std::memory_order_acquire);
    writeQueue();
    if (LogWriters::get().release(*this)) return;
    sys::futexWait(m_woken, woken, kNever);
  }
}

void LogWriter::writeQueue() {
  std::vector<std::string> lines;
  uint64_t dropped;
  uint32_t asked;
  bool reopen;
  {
    Lock lock(m_mutex);
    lines.swap(m_queue);
    m_bytes = 0;
    dropped = std::exchange(m_dropped, 0);
    asked = m_asked;
    reopen = std::exchange(m_reopen, false);
    m_file.setRotation(m_rotation);
  }
  if (reopen) m_reopen_error.store(m_file.reopen(), std::memory_order_relaxed);
  writeLines(lines);
  if (dropped != 0) tellDropped(dropped);
  m_answered.store(asked, std::memory_order_release);
  sys::futexWake(m_answered, INT_MAX);
}

void LogWriter::writeLines(const std::vector<std::string>& lines) {
  size_t begin = 0;
  try {
    std::string& chunk = m_chunk;
    for (size_t end = 0; end < lines.size(); begin = end) {
      chunk.clear();
      const size_t most = std::min(kChunkBytes, m_file.room());
      do {
        chunk += lines[end++];
      } while (end < lines.size() && chunk.size() + lines[end].size() <= most);
      for (size_t written = writeChunk(chunk); begin < end && lines[begin].size() <= written; ++begin) {
        written -= lines[begin].size();
      }
      m_lost.fetch_add(end - begin, std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {
    m_lost.fetch_add(lines.size() - begin, std::memory_order_relaxed);
    log::noMemory();
  }
}

void LogWriter::tellDropped(uint64_t count) {
  char line[128];
  const auto end = fmt::format_to_n(line, sizeof line, "log: {} lines were dropped here, the queue was full\n", count);
  writeChunk({line, end.size});
}

// Returns how many bytes were written.
size_t LogWriter::writeChunk(std::string_view chunk) {
  report(Trouble::kRotate, m_file.rotateFor(chunk.size()));
  report(Trouble::kOpen, m_file.ensure());
  if (!m_file.isOpen()) return 0;
  const LogFile::Written written = m_file.write(chunk);
  report(Trouble::kWrite, written.error);
  return written.bytes;
}

void LogWriter::report(Trouble what, int error) {
  constexpr const char* kNames[] = {"rotate", "open", "write"};
  const auto index = static_cast<size_t>(what);
  const bool had = std::exchange(m_had[index], error != 0);
  if (had == (error != 0)) return;
  const std::string_view name = m_path.empty() ? std::string_view("stdout") : m_path;
  if (had) {
    complain("log: {}: can {} again; {} lines are lost by now", name, kNames[index], lost());
  } else {
    complain("log: {}: cannot {}: {}", name, kNames[index], std::strerror(-error));
  }
}

}  // namespace sylar::detail
