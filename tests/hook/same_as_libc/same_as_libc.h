// Hooked against raw: a case is a piece of code that makes calls and writes down what they gave. It runs with libc's own
// functions on a plain thread, and then in every way in which the hooks can be met; all must write the same.
#pragma once

#include <sys/syscall.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "tests/hook/support.h"

namespace sylar::test {

inline std::atomic<int> g_sigpipes{0};

/// Waits until thread `id` has slept for 1 ms in one call into the kernel, so that it, or its only fiber, is taken to be waiting.
/// The kernel tells which call it is. At a futex it must have slept for 50 ms, because locks are futexes, too: the allocator's for
/// example.
inline void awaitAsleep(pid_t id) {
  const std::string folder = "/proc/self/task/" + std::to_string(id);
  std::string last;
  for (int looks = 0;; ++looks) {
    std::string now, call;
    std::ifstream status(folder + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("State:") || line.starts_with("voluntary_ctxt_switches:")) now += line;
    }
    std::getline(std::ifstream(folder + "/syscall"), call);
    const bool sleeps = now.find("S (sleeping)") != std::string::npos;
    if (!sleeps || now + call != last) looks = 0;
    if (looks >= (call.starts_with(std::to_string(SYS_futex) + ' ') ? 50 : 1)) return;
    last = now + call;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// One run of a case.
class Run {
 public:
  Run(const Calls& creators, const Calls& calls) : make(creators), call(calls) {}
  ~Run() {
    for (std::thread& other : m_others) other.join();
    for (const int fd : m_open) call.close(fd);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Calls& make;  ///< makes descriptors
  const Calls& call;  ///< everything else

  // Descriptors that the run closes.
  int keep(int fd) {
    if (fd >= 0) m_open.push_back(fd);
    return fd;
  }
  Ends keep(Ends ends) { return {keep(ends[0]), keep(ends[1])}; }
  void close(int fd) {
    m_open.remove(fd);
    got("close", call.close(fd));
  }

  // What it writes down.
  void got(const std::string& what, ssize_t result) {
    const int error = errno;
    m_transcript += what + " = " + std::to_string(result);
    if (result == -1) m_transcript += std::string(" ") + ::strerrorname_np(error);
    m_transcript += '\n';
  }
  void note(const std::string& what, const std::string& value) { m_transcript += what + ": " + value + '\n'; }
  /// The SIGPIPEs raised since the last time.
  void noteSignals() { note("SIGPIPEs", std::to_string(g_sigpipes.exchange(0))); }
  const std::string& transcript() const { return m_transcript; }

  /// Does `action` on another thread, with libc's functions, most likely when the run waits already. The case must give the same
  /// either way.
  void later(std::function<void(const Calls&)> action) {
    m_others.emplace_back([action = std::move(action)] {
      const timespec moment{0, 2'000'000};
      libcCalls().nanosleep(&moment, nullptr);
      action(libcCalls());
    });
  }
  /// The same, but not before the run waits: where a call that comes later gives something else.
  void whileItWaits(std::function<void(const Calls&)> action) {
    m_others.emplace_back([action = std::move(action), thread = threadId()] {
      awaitAsleep(thread);
      action(libcCalls());
    });
  }
  /// Until the others are through.
  void join() {
    for (std::thread& other : m_others) other.join();
    m_others.clear();
  }

 private:
  std::list<int> m_open;
  std::vector<std::thread> m_others;
  std::string m_transcript;
};

struct Case {
  std::string name;
  std::function<void(Run&)> body;
};

inline std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

/// Runs the case once; what it wrote down, and how many SIGPIPEs it raised.
inline std::string transcriptOf(const Case& one, const Calls& creators, const Calls& calls) {
  Run run(creators, calls);
  one.body(run);
  run.join();
  run.noteSignals();
  return run.transcript();
}

inline std::string transcriptInFiber(const Case& one, const Calls& creators, bool hooks_on) {
  std::string transcript;
  inFiber([&] {
    set_hook_enable(hooks_on);
    transcript = transcriptOf(one, creators, hookedCalls());
  });
  return transcript;
}

class SameAsLibc : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    struct sigaction count {};
    count.sa_handler = [](int) { g_sigpipes.fetch_add(1); };
    ::sigaction(SIGPIPE, &count, nullptr);
  }

  static void compare(const Case& one) {
    const Calls hooked = hookedCalls();
    const std::string expected = transcriptOf(one, libcCalls(), libcCalls());
    EXPECT_EQ(transcriptInFiber(one, hooked, true), expected) << "in a fiber";
    EXPECT_EQ(transcriptInFiber(one, libcCalls(), true), expected) << "in a fiber, on descriptors that were made without hooks";
    EXPECT_EQ(transcriptInFiber(one, hooked, false), expected) << "in a fiber with hooks off";
    EXPECT_EQ(transcriptOf(one, hooked, hooked), expected) << "through the hooks on a plain thread";
    if (testing::Test::HasFailure()) return;
    RecordProperty("transcript", expected);
  }
};

inline std::string nameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }

/// A value that the compiler cannot look into: what is wrong here is wrong on purpose.
template <class T>
T opaque(T value) {
  volatile T hidden = value;
  return hidden;
}
/// An address that the kernel can neither read nor write.
inline void* badPointer() { return reinterpret_cast<void*>(opaque<uintptr_t>(8)); }

}  // namespace sylar::test
