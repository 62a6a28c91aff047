// For the tests of hooks: things to read from that are no sockets, and what makes them readable.
#pragma once

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>

#include <cstdlib>
#include <functional>
#include <memory>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {

/// Descriptors that are closed with their scope.
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    for (const int fd : m_fds) ::close(fd);
    if (!m_file.empty()) ::unlink(m_file.c_str());
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  int keep(int fd) {
    EXPECT_GE(fd, 0);
    return m_fds.emplace_back(fd);
  }
  /// The name of a new file, removed with the scope.
  const std::string& file() {
    char name[] = "/tmp/sylar_test_XXXXXX";
    ::close(::mkstemp(name));
    return m_file = name;
  }

 private:
  std::vector<int> m_fds;
  std::string m_file;
};

/// Something to read from. One feed makes it readable for one read, of `size` bytes at least.
struct Source {
  int fd = -1;
  size_t size = 0;
  std::function<void()> feed;
  std::shared_ptr<Owned> owned = std::make_shared<Owned>();
};

inline Source eventSource() {
  Source source;
  const int fd = source.owned->keep(::eventfd(0, EFD_SEMAPHORE));
  source.fd = fd;
  source.size = sizeof(uint64_t);
  source.feed = [fd] {
    const uint64_t one = 1;
    EXPECT_EQ(libcCalls().write(fd, &one, sizeof one), ssize_t(sizeof one));
  };
  return source;
}

inline Source timerSource() {
  Source source;
  const int fd = source.owned->keep(::timerfd_create(CLOCK_MONOTONIC, 0));
  source.fd = fd;
  source.size = sizeof(uint64_t);
  source.feed = [fd] {
    itimerspec soon{};
    soon.it_value.tv_nsec = 1000;
    EXPECT_EQ(::timerfd_settime(fd, 0, &soon, nullptr), 0);
  };
  return source;
}

/// SIGUSR2; the calling thread and those it makes have it blocked from here on.
inline Source signalSource() {
  Source source;
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGUSR2);
  EXPECT_EQ(::pthread_sigmask(SIG_BLOCK, &signals, nullptr), 0);
  source.fd = source.owned->keep(::signalfd(-1, &signals, 0));
  source.size = sizeof(signalfd_siginfo);
  source.feed = [] { EXPECT_EQ(::kill(::getpid(), SIGUSR2), 0); };
  return source;
}

inline Source inotifySource() {
  Source source;
  const std::string name = source.owned->file();
  source.fd = source.owned->keep(::inotify_init1(0));
  source.size = sizeof(inotify_event);
  EXPECT_GE(::inotify_add_watch(source.fd, name.c_str(), IN_ATTRIB), 0);
  source.feed = [name] { EXPECT_EQ(::chmod(name.c_str(), 0600), 0); };
  return source;
}

/// A FIFO opened by its name.
inline Ends makeFifo(Owned& owned) {
  const std::string name = owned.file();
  ::unlink(name.c_str());
  EXPECT_EQ(::mkfifo(name.c_str(), 0600), 0);
  const int both = ::open(name.c_str(), O_RDWR | O_CLOEXEC);  // so that neither open waits
  const Ends ends{owned.keep(::open(name.c_str(), O_RDONLY | O_CLOEXEC)), owned.keep(::open(name.c_str(), O_WRONLY | O_CLOEXEC))};
  EXPECT_EQ(::close(both), 0);
  return ends;
}

/// A pseudoterminal: {slave, master}. Raw: bytes go through unchanged, else by lines; no echo.
inline Ends makeTerminal(Owned& owned, bool raw, uint8_t min = 1, uint8_t tenths = 0) {
  const int master = owned.keep(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_EQ(::grantpt(master), 0);
  EXPECT_EQ(::unlockpt(master), 0);
  char name[64];
  EXPECT_EQ(::ptsname_r(master, name, sizeof name), 0);
  const int slave = owned.keep(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode{};
  EXPECT_EQ(::tcgetattr(slave, &mode), 0);
  if (raw) ::cfmakeraw(&mode);
  mode.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  mode.c_cc[VMIN] = min;
  mode.c_cc[VTIME] = tenths;
  if (!raw) mode.c_cc[VEOF] = 4;
  EXPECT_EQ(::tcsetattr(slave, TCSANOW, &mode), 0);
  return {slave, master};
}

inline Source fifoSource() {
  Source source;
  const Ends ends = makeFifo(*source.owned);
  source.fd = ends[0];
  source.size = 1;
  source.feed = [ends] { EXPECT_EQ(libcCalls().write(ends[1], "f", 1), 1); };
  return source;
}

/// One side of a pseudoterminal, fed from the other.
inline Source terminalSource(bool raw, bool master) {
  Source source;
  const Ends ends = makeTerminal(*source.owned, raw);
  source.fd = ends[master ? 1 : 0];
  source.size = raw || master ? 1 : 2;  // by lines; the master is told byte by byte
  source.feed = [from = ends[master ? 0 : 1], size = source.size] {
    EXPECT_EQ(libcCalls().write(from, "x\n", size), static_cast<ssize_t>(size));
  };
  return source;
}

struct NamedSource {
  std::string name;
  std::function<Source()> make;
};
inline std::ostream& operator<<(std::ostream& out, const NamedSource& one) { return out << one.name; }

inline const std::vector<NamedSource>& sources() {
  static const std::vector<NamedSource> all = {
      {"Eventfd", eventSource},
      {"Timerfd", timerSource},
      {"Signalfd", signalSource},
      {"Inotify", inotifySource},
      {"FifoByName", fifoSource},
      {"Terminal", [] { return terminalSource(false, false); }},
      {"TerminalMaster", [] { return terminalSource(false, true); }},
      {"RawTerminal", [] { return terminalSource(true, false); }},
      {"RawTerminalMaster", [] { return terminalSource(true, true); }},
  };
  return all;
}

}  // namespace sylar::test
