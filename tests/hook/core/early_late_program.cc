// Uses the hooks before the library's constructors have run, in main, and after it. Exits with 0 if all of it went well; a phase
// that fails ends the program at once with 2.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "sylar/iomanager.h"

namespace {

constinit int g_phases = 0;

void fail(const char* phase, const char* what) {
  char line[200];
  const int size = std::snprintf(line, sizeof line, "%s: %s\n", phase, what);
  (void)!::write(2, line, static_cast<size_t>(size));
  ::_exit(2);
}

/// A little of everything that is interposed; on a plain thread all of it is libc's.
void useAll(const char* phase) {
  const auto check = [phase](bool holds, const char* what) {
    if (!holds) fail(phase, what);
  };
  int fds[2];
  char byte = 0;
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
  check(::write(fds[0], "x", 1) == 1 && ::read(fds[1], &byte, 1) == 1 && byte == 'x', "write, read");
  check(::fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0 && ::read(fds[1], &byte, 1) == -1, "fcntl");
  pollfd one{fds[1], POLLIN, 0};
  check(::poll(&one, 1, 0) == 0, "poll");
  const int copy = ::dup(fds[0]);
  check(copy >= 0 && ::dup2(fds[1], copy) == copy, "dup, dup2");
  for (const int fd : {fds[0], fds[1], copy}) check(::close(fd) == 0, "close");
  check(::pipe(fds) == 0 && ::close(fds[0]) == 0 && ::close(fds[1]) == 0, "pipe");
  const int file = ::open("/dev/null", O_RDONLY);
  check(file >= 0 && ::read(file, &byte, 1) == 0 && ::close(file) == 0, "open");
  check(::usleep(1) == 0, "usleep");
  ++g_phases;
}

[[gnu::constructor(101)]] void beforeConstructors() { useAll("constructor function"); }

struct Static {
  explicit Static(const char* before) { useAll(before); }
  ~Static() { useAll("static destructor"); }
};
[[gnu::init_priority(102)]] const Static g_first("first static object");
const Static g_last("static object");

// FM-49: the thread is a worker.
struct OfThread {
  ~OfThread() { useAll("thread_local destructor"); }
  int touched = 0;
};
thread_local OfThread t_object;

bool parksInAFiber() {
  bool overlapped = false;
  sylar::IOManager iom({.threads = 1, .use_caller = false, .name = "early", .identity = sylar::FiberIdentity::kWorker});
  iom.schedule([&overlapped] {
    t_object.touched = 1;  // its destructor runs at the end of the worker's thread
    int fds[2];
    char byte;
    if (::pipe(fds) != 0) return;
    sylar::IOManager::GetThis()->schedule([&fds] { (void)!::write(fds[1], "x", 1); });
    overlapped = ::read(fds[0], &byte, 1) == 1;
    for (const int fd : fds) ::close(fd);
  });
  iom.stop();
  return overlapped;
}

}  // namespace

int main() {
  if (g_phases != 3) fail("start", "constructors");
  useAll("main");
  if (!parksInAFiber()) fail("main", "parking");
  t_object.touched = 1;
  std::thread([] { t_object.touched = 1; }).join();
  if (g_phases != 6) fail("main", "thread_local destructors");
  std::atexit([] {
    useAll("atexit");
    if (!parksInAFiber()) fail("atexit", "parking");
  });
  return 0;
}
