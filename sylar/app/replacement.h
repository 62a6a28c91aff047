// Internal. A hot restart: a service starts its program anew and leaves its listening sockets to that process. When that one serves,
// the old one ends as it does on SIGTERM. Connections that wait in the queues of the sockets are never refused, since one of the two
// accepts them.
//
//   old                                        new
//   Replacement(program, ...)         ->       Predecessor: has the sockets
//   ...                                        binds them, begins to accept
//   on_up                             <-       relieve()
//   drains                                     serves
//
// The sockets come as from systemd: from descriptor 3 on, LISTEN_FDS of them. Source: sd_listen_fds(3).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace sylar {

/// What this process was started with. Thread safety: none.
class Predecessor {
 public:
  /// Takes the listening sockets that systemd or an old process has left (inherited_listeners.h), and their variables out of the
  /// environment. To be made while the process has one thread.
  Predecessor();
  ~Predecessor();
  Predecessor(const Predecessor&) = delete;
  Predecessor& operator=(const Predecessor&) = delete;

  /// Returns the descriptor of the old process' pid file, which is the caller's from here on, or -1.
  int takePidFile();
  /// Tells the old process, if there is one, that this one serves.
  void relieve();

 private:
  int m_pid_file = -1;
  int m_news = -1;  // to the old process
};

/// The process that is to take the place of this one.
class Replacement {
 public:
  /// Starts `program` with `arguments`, of which the first is its name, and leaves it `listeners` and, if it is not -1, `pid_file`.
  /// A thread calls `on_up` when it serves, and logs if it ends before. Throws std::system_error.
  Replacement(const std::string& program, const std::vector<std::string>& arguments, const std::vector<int>& listeners,
              int pid_file, std::function<void()> on_up);
  /// Ends the new process, unless it serves.
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  bool serves() const { return m_state == State::kServes; }
  bool hasFailed() const { return m_state == State::kFailed; }

 private:
  enum class State { kStarts, kServes, kFailed };

  void follow(int news, const std::function<void()>& on_up);

  pid_t m_process = -1;
  std::atomic<State> m_state{State::kStarts};
  std::thread m_follower;
};

}  // namespace sylar
