// What fibers of one worker do N times, in ns of one:
//
//   free        lock and unlock a free std::mutex
//   contended   two fibers hand a std::mutex to one another: each unlocks it, which wakes the other, and locks it, which suspends
//   yield       two fibers take turns
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "sylar/iomanager.h"

namespace {

using Clock = std::chrono::steady_clock;

std::mutex g_mutex;
int g_begun = 0;

void lockAndUnlock(long count) {
  for (long i = 0; i < count; ++i) {
    const std::lock_guard lock(g_mutex);
    asm volatile("" ::: "memory");
  }
}
void handOver(long count) {
  ++g_begun;
  g_mutex.lock();
  while (g_begun < 2) sylar::Fiber::YieldToReady();  // from here on the other one waits
  for (long i = 0; i < count; ++i) {
    g_mutex.unlock();
    g_mutex.lock();
  }
  g_mutex.unlock();
}
void yield(long count) {
  for (long i = 0; i < count; ++i) sylar::Fiber::YieldToReady();
}

/// Has `fibers` fibers do `body`, `count` times together, and prints the time of one.
void measure(int fibers, long count, void (*body)(long)) {
  sylar::IOManager iom(1, false, "bench");
  iom.schedule([=] {
    std::vector<sylar::Fiber::ptr> all;
    for (int i = 0; i < fibers; ++i) all.push_back(std::make_shared<sylar::Fiber>([=] { body(count / fibers); }));
    const auto begin = Clock::now();
    for (const auto& fiber : all) sylar::IOManager::GetThis()->schedule(fiber);
    for (const auto& fiber : all) fiber->join();
    const std::chrono::duration<double, std::nano> time = Clock::now() - begin;
    std::printf("{\"ns\": %.4f}\n", time.count() / static_cast<double>(count));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  const long count = argc == 3 ? std::atol(argv[2]) : 0;
  if (count < 2) return 2;
  if (what == "free") {
    measure(1, count, lockAndUnlock);
  } else if (what == "contended") {
    measure(2, count, handOver);
  } else if (what == "yield") {
    measure(2, count, yield);
  } else {
    return 2;
  }
}
