// Internal. Writes lines to a file or to stdout on a thread of its own, so that a slow device does not stall threads that log.
//
// Lines wait in a queue of bounded size. When it is full, more lines are dropped and counted, and a line with their number
// follows those that were kept. All I/O is done by the writer's thread, which runs no fibers and takes no signals, so a log line
// never suspends, interrupts or kills its caller.
//
//   append      queue += line                 wakes the writer if the queue was empty
//   writer      takes the whole queue, writes it, answers all flushes that were asked for before it took the queue
//   flush       asks, wakes the writer, waits for the answer or a deadline
//
// At exit(3) the queue is written, and from then on append() waits for its line, because the destructors of statics may log. The
// queue is also written before a fork, because the parent of a daemon ends with _exit. The child begins with an empty queue, and
// makes a thread of its own at its first line. A fatal signal also waits for the queue (last_words.h). All these waits are
// bounded, in case the device is stuck.
//
// A writer lives as long as its handles, and then until its thread has written the rest, for which no caller waits. If its file
// is named again before that, the caller gets a handle of the same writer, so a file never has two writers.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/clock.h"
#include "sylar/log/log_file.h"

namespace sylar::detail {

class LogWriter : public std::enable_shared_from_this<LogWriter> {
 public:
  static constexpr size_t kDefaultQueueBytes = 4 << 20;

  /// Returns the writer of stdout.
  static std::shared_ptr<LogWriter> toStdout();
  /// Returns the writer of this file, which all callers that name the file share. The first one decides on the queue, the last
  /// one on the rotation. Throws std::bad_alloc.
  static std::shared_ptr<LogWriter> toFile(const std::string& path, LogRotation rotation = {},
                                           size_t queue_bytes = kDefaultQueueBytes);
  /// Calls flush() for all writers; returns false if one of them returned false.
  static bool flushAll(Deadline deadline);

  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Queues a line, which ends with its newline. Blocks for a few instructions; never throws.
  void append(std::string line) noexcept;
  /// Waits until all lines that were appended before have been written; returns false if that has not happened by `deadline`.
  bool flush(Deadline deadline);
  /// Opens the file again. Returns 0 or -errno, which is -ETIMEDOUT if a stuck device keeps the writer from it.
  int reopen();

  /// Returns how many lines were dropped because the queue was full or because the device refused them.
  uint64_t lost() const { return m_lost.load(std::memory_order_relaxed); }

 private:
  friend struct LogWriters;
  enum class Trouble { kRotate, kOpen, kWrite };

  LogWriter(std::string path, size_t queue_bytes);
  static std::shared_ptr<LogWriter> get(std::string path, LogRotation rotation, size_t queue_bytes);

  void retire();
  bool end();
  bool startThread() noexcept;
  void run();
  void writeQueue();
  void writeLines(const std::vector<std::string>& lines);
  void tellDropped(uint64_t count);
  size_t writeChunk(std::string_view chunk);
  void report(Trouble what, int error);
  void wake();
  void forgetThread();
  bool written(uint64_t crash);

  const std::string m_path;  // absolute; empty for stdout
  const size_t m_queue_bytes;

  OsMutex m_start;  // held while the thread is made; taken before m_mutex
  std::atomic<bool> m_running{false};

  OsMutex m_mutex;
  std::vector<std::string> m_queue SYLAR_GUARDED_BY(m_mutex);
  size_t m_bytes SYLAR_GUARDED_BY(m_mutex) = 0;
  uint64_t m_dropped SYLAR_GUARDED_BY(m_mutex) = 0;  // since the last line that told their number
  uint32_t m_asked SYLAR_GUARDED_BY(m_mutex) = 0;    // counts the flushes that were asked for
  uint64_t m_crash SYLAR_GUARDED_BY(m_mutex) = 0;    // the last crash that has asked for a flush
  bool m_reopen SYLAR_GUARDED_BY(m_mutex) = false;
  LogRotation m_rotation SYLAR_GUARDED_BY(m_mutex);
  bool m_gone SYLAR_GUARDED_BY(m_mutex) = false;  // has no handles, and nothing left to write or to answer

  std::atomic<uint32_t> m_woken{0};     // counts the wakes; the writer sleeps on it
  std::atomic<uint32_t> m_answered{0};  // the last flush that was done; flushers sleep on it
  std::atomic<int> m_reopen_error{0};
  std::atomic<uint64_t> m_lost{0};

  LogFile m_file;       // used by the writer's thread only
  std::string m_chunk;  // likewise; kept, so that writing needs no new memory in a process that crashes
  bool m_had[3] = {};   // likewise; each Trouble is reported when it begins and when it ends
};

}  // namespace sylar::detail
