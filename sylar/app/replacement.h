// Internal. A hot restart: a service starts its program again and leaves its listening sockets to that process. When that one
// serves, the old one ends as it does on SIGTERM. Connections that wait in the queues of the sockets are never refused, since one
// of the two accepts them.
//
//   old                                        new
//   Replacement(program, ...)         ->       Predecessor: has the sockets
//   ...                                        binds them, begins to accept
//   on_news                           <-       relieve()
//   drains                                     serves
//
// The sockets come as from systemd: from descriptor 3 on, LISTEN_FDS of them. Source: sd_listen_fds(3).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sylar/address.h"
#include "sylar/base/internal.h"
#include "sylar/clock.h"

namespace sylar::detail {

/// What this process was started with. Thread safety: none.
class Predecessor {
 public:
  /// Takes the listening sockets that systemd or an old process has left (inherited_listeners.h), and their variables out of the
  /// environment. To be made before the process has other threads or children.
  Predecessor();
  ~Predecessor();
  Predecessor(const Predecessor&) = delete;
  Predecessor& operator=(const Predecessor&) = delete;

  /// Returns the descriptor of the old process' pid file, which is the caller's from here on, or -1.
  int takePidFile();
  /// Tells the old process, if there is one, that this one serves. Returns the addresses of Unix sockets whose files this process
  /// has to remove from here on.
  std::vector<Address::ptr> relieve();

 private:
  std::vector<Address::ptr> m_files;  // of the old process
  int m_pid_file = -1;
  int m_news = -1;  // to the old process
};

/// What is left to the new process.
struct Legacy {
  std::vector<int> listeners;
  size_t with_files = 0;  ///< so many of them, the first ones, are Unix sockets whose files this process would remove
  int pid_file = -1;
};

/// The process that is to take the place of this one.
class Replacement {
 public:
  /// Starts `program` with `arguments`, of which the first is its name. A thread calls `on_news`, with true when the new process
  /// serves, or with false when it has ended before, but not after end(). Throws std::system_error.
  Replacement(const std::string& program, const std::vector<std::string>& arguments, const Legacy& legacy,
              std::function<void(bool serves)> on_news);
  /// Kills the new process, unless it serves or has ended.
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  pid_t process() const { return m_process; }
  bool serves() const { return m_state == State::kServes; }
  bool hasFailed() const { return m_state == State::kFailed; }
  /// Returns true if the new process serves. Otherwise tells it to end.
  bool end();
  /// Waits until the new process serves or has ended. Returns false if that takes until `deadline`, a time of the steady clock.
  bool await(Deadline deadline);

 private:
  enum class State { kStarts, kServes, kFailed, kEnds };

  void follow(int news, const std::function<void(bool serves)>& on_news);
  bool leave(State next);

  pid_t m_process = -1;
  std::atomic<State> m_state{State::kStarts};
  std::mutex m_mutex;
  std::condition_variable m_changed;
  bool m_known = false;  // how it came out
  std::thread m_follower;
};

}  // namespace sylar::detail
