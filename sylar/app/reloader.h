// Internal. Reloads on a thread of its own, because the listeners of settings may be slow, and must not keep the process from
// seeing a signal to end.
//
// Thread safety: none; a reloader belongs to one thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "sylar/base/internal.h"
#include "sylar/clock.h"

namespace sylar::detail {

class Reloader {
 public:
  /// Makes a reloader that calls `reload`, never twice at the same time. `reload` must not throw.
  explicit Reloader(std::function<void()> reload) : m_reload(std::move(reload)) {}
  /// Must be called only after end() has returned true.
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  /// Asks for a reload. If one is in progress, another follows it, because files may have changed since it read them. Throws
  /// std::system_error if no thread can be made.
  void ask();
  /// Lets no reload begin any more, and waits for the one in progress. Returns false if it has not ended by `deadline`, a time of
  /// the steady clock.
  bool end(Deadline deadline);

 private:
  void run();

  const std::function<void()> m_reload;
  std::mutex m_mutex;
  std::condition_variable m_ended;
  bool m_asked = false;
  bool m_running = false;
  std::thread m_thread;
};

}  // namespace sylar::detail
