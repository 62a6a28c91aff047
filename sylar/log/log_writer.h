// Internal. Writes lines to a file or to stdout on a thread of its own, so that a slow device stalls nobody who logs.
//
// Lines wait in a queue of bounded size. When it is full, more lines are dropped and counted, and a line that tells how many
// follows those that were kept. All I/O is done by the writer's thread, which is no fiber's and takes no signals: nobody is ever
// suspended, interrupted or killed by a log line.
//
//   append      queue += line                 wakes the writer if the queue was empty
//   writer      takes the whole queue, writes it, answers all flushes that were asked for before it took the queue
//   flush       asks, wakes the writer, waits for the answer or a deadline
//
// At exit(3) what is queued is written, and from then on append() waits for its line: the destructors of statics may log. Before
// a fork it is written, too, since the parent of a daemon ends with _exit; the child begins with an empty queue, and makes a
// thread of its own at its first line. All these waits are bounded, should the device be stuck.
//
// A writer lives as long as its handles, and then until its thread has written what is left; nobody waits for that. Who names its
// file meanwhile gets a handle of the same writer, so a file has never two.
//
// Thread safety: all calls from any thread. Suspends: no.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/clock.h"
#include "sylar/base/os_mutex.h"
#include "sylar/log/log_file.h"

namespace sylar {

class LogWriter : public std::enable_shared_from_this<LogWriter> {
 public:
  static constexpr size_t kDefaultQueueBytes = 4 << 20;

  /// The one of stdout.
  static std::shared_ptr<LogWriter> toStdout();
  /// The one of this file, shared by all who name it: the first decides on the queue, the last on the rotation. Throws
  /// std::bad_alloc.
  static std::shared_ptr<LogWriter> toFile(const std::string& path, LogRotation rotation = {},
                                           size_t queue_bytes = kDefaultQueueBytes);
  /// flush() for all that exist.
  static bool flushAll(Deadline deadline);

  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// A line with its end. Blocks for a few instructions; never throws.
  void append(std::string line) noexcept;
  /// Waits until all that was appended before has been written; false if that has not happened by `deadline`.
  bool flush(Deadline deadline);
  /// Opens the file anew. 0 or -errno; ETIMEDOUT if a stuck device keeps the writer from it.
  int reopen();

  /// Lines that were dropped because the queue was full, or that the device refused.
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

  const std::string m_path;  // absolute; empty: stdout
  const size_t m_queue_bytes;

  OsMutex m_start;  // held while the thread is made; taken before m_mutex
  std::atomic<bool> m_running{false};

  OsMutex m_mutex;
  std::vector<std::string> m_queue SYLAR_GUARDED_BY(m_mutex);
  size_t m_bytes SYLAR_GUARDED_BY(m_mutex) = 0;
  uint64_t m_dropped SYLAR_GUARDED_BY(m_mutex) = 0;  // since the last line that told of it
  uint32_t m_asked SYLAR_GUARDED_BY(m_mutex) = 0;    // flushes
  bool m_reopen SYLAR_GUARDED_BY(m_mutex) = false;
  LogRotation m_rotation SYLAR_GUARDED_BY(m_mutex);
  bool m_gone SYLAR_GUARDED_BY(m_mutex) = false;  // without handles, and with nothing left to write or to answer

  std::atomic<uint32_t> m_woken{0};     // counts; the writer sleeps on it
  std::atomic<uint32_t> m_answered{0};  // the last flush that was done; flushers sleep on it
  std::atomic<int> m_reopen_error{0};
  std::atomic<uint64_t> m_lost{0};

  LogFile m_file;      // the thread's
  bool m_had[3] = {};  // the thread's: each Trouble is told when it begins and when it ends
};

}  // namespace sylar
