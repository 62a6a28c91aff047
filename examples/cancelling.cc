// Ending a fiber that goes on by itself: one that waits and cleans up, and one that computes.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "sylar/iomanager.h"
#include "sylar/sync/task_group.h"

namespace {

// [cancelled]
void follow(int fd) {
  char buffer[256];
  ssize_t size;
  while ((size = read(fd, buffer, sizeof buffer)) > 0) {
    // ... use the data
  }
  if (size < 0 && errno == ECANCELED) std::puts("follow: cancelled");
  const sylar::this_fiber::CancelShield shield;  // lets the fiber wait again from here on
  usleep(10'000);
  std::puts("follow: cleaned up");
}
// [cancelled]

// [compute]
void count(std::atomic<uint64_t>& counter) {
  while (!sylar::this_fiber::cancelled()) {
    for (int i = 0; i < 1000; ++i) ++counter;
    sylar::Fiber::YieldToReady();  // lets the other fibers of this thread run
  }
}
// [compute]

void show() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return std::perror("socketpair");
  std::atomic<uint64_t> counter{0};
  sylar::TaskGroup group;
  group.spawn([&] { follow(ends[0]); });
  group.spawn([&] { count(counter); });
  std::printf("in time: %s\n", group.join(sylar::Deadline::after(std::chrono::milliseconds(100))) ? "yes" : "no");
  group.cancel();
  group.join();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "cancelling");
  iom.schedule(show);
}
