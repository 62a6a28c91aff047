// A named operating-system thread, with sylar's interface.
//
// Thread safety: a Thread object belongs to the thread that made it; the static functions concern the calling thread.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

namespace sylar {

/// Runs a function on its own thread. An exception that leaves the function ends the process, as with std::thread.
class Thread {
 public:
  using ptr = std::shared_ptr<Thread>;

  /// Starts `cb`, and returns once the thread runs and getId() is known. The kernel sees the first 15 bytes of `name`; an empty
  /// name becomes "UNKNOW". Throws std::system_error if the thread cannot be made, and std::bad_alloc.
  Thread(std::function<void()> cb, const std::string& name);

  /// Detaches a thread that was not joined. Source: sylar.
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Returns the kernel id of the thread.
  pid_t getId() const { return m_id; }
  const std::string& getName() const { return m_name; }

  /// Waits for the end of the function; a second call does nothing. Suspends a fiber if the hooks are linked, else blocks the
  /// thread.
  void join();

  /// Returns the Thread object whose function the calling thread runs, or null.
  static Thread* GetThis();
  /// Returns the name of the calling thread, which was given here or by SetName; otherwise "UNKNOW".
  static const std::string& GetName();
  /// Names the calling thread, for GetName and for the kernel (first 15 bytes). An empty name is ignored. Throws std::bad_alloc.
  static void SetName(const std::string& name);

 private:
  struct Start;
  static void* main(void* start);

  pid_t m_id = -1;
  bool m_joinable = false;
  pthread_t m_thread{};
  std::string m_name;
};

}  // namespace sylar
