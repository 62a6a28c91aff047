// A thousand fibers sleep for a second each, on one thread, and that takes one second in all. `sleep` is libc's; linking
// sylar::hook makes it suspend the fiber instead of blocking the thread.
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "sylar/iomanager.h"

int main() {
  const auto start = std::chrono::steady_clock::now();
  int awake = 0;  // all fibers are on one thread, and none is suspended inside ++
  {
    // [sleepers]
    sylar::IOManager iom(1, false, "sleepers");
    for (int i = 0; i < 1000; ++i) {
      iom.schedule([&awake] {
        sleep(1);
        ++awake;
      });
    }
    // [sleepers]
  }  // the destructor waits for all of them
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%d fibers slept 1 s each in %.2f s\n", awake, took.count());
  return awake == 1000 && took.count() < 2 ? 0 : 1;
}
