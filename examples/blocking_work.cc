// Work that always blocks its thread, such as reading files and computing, runs on threads of its own. The fiber that wants the
// result is suspended, so its thread stays free.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "sylar/iomanager.h"

namespace {

using sylar::Fiber;
using sylar::IOManager;

// [switch]
/// Reads a file on a thread of `files`, where it may block.
std::string readFile(sylar::Scheduler& files, const std::string& path) {
  const sylar::SchedulerSwitcher elsewhere(&files);  // the fiber moves there, and comes back at the end of the scope
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}
// [switch]

uint64_t compute() {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 10'000'000; ++i) sum += i % 7;
  return sum;
}

// [thread]
/// Computes on a thread of its own.
uint64_t computeElsewhere() {
  uint64_t result = 0;
  IOManager* const iom = IOManager::GetThis();
  std::thread thread([&result, iom, self = Fiber::GetThis(), expected = sylar::WorkGuard(*iom)] {
    result = compute();
    iom->schedule(self);
  });
  Fiber::YieldToHold();  // until schedule(self); the guard tells stop() that this call will come
  thread.join();         // the thread has nothing left to do
  return result;
}
// [thread]

}  // namespace

int main(int, char** argv) {
  sylar::Scheduler files(2, false, "files");
  files.start();
  sylar::IOManager iom(1, false, "main");
  bool done = false;
  int ticks = 0;
  iom.schedule([&] {
    while (!done) {  // shows that the only thread of `iom` is free
      usleep(1000);
      ++ticks;
    }
  });
  iom.schedule([&] {
    std::printf("computed: %llu\n", static_cast<unsigned long long>(computeElsewhere()));
    std::printf("read: %s\n", readFile(files, argv[0]).starts_with("\177ELF") ? "an ELF file" : "something else");
    done = true;
  });
  iom.stop();
  std::printf("the thread was free: %s\n", ticks > 0 ? "yes" : "no");
  return ticks > 0 ? 0 : 1;
}
