// Work that always blocks its thread, such as reading files and computing, runs on other threads. The fiber that wants the result
// is suspended, so its thread stays free.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "sylar/iomanager.h"
#include "sylar/sync/blocking.h"

// [blocking]
/// Reads a file on a helper thread, where that may block.
std::string readFile(const std::string& path) {
  return sylar::blocking([path] {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  });
}
// [blocking]

uint64_t compute() {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 10'000'000; ++i) sum += i % 7;
  return sum;
}

// [thread]
/// Computes on a thread of its own.
uint64_t computeElsewhere() {
  sylar::Promise<uint64_t> promise;
  sylar::Future<uint64_t> result = promise.getFuture();
  std::thread([promise = std::move(promise)]() mutable { promise.setValue(compute()); }).detach();
  return result.get();  // suspends this fiber
}
// [thread]

int main(int, char** argv) {
  bool done = false;
  int ticks = 0;
  sylar::IOManager iom(1, false, "main");
  iom.schedule([&] {
    while (!done) {  // shows that the only thread of `iom` is free
      usleep(1000);
      ++ticks;
    }
  });
  iom.schedule([&] {
    std::printf("computed: %llu\n", static_cast<unsigned long long>(computeElsewhere()));
    std::printf("read: %s\n", readFile(argv[0]).starts_with("\177ELF") ? "an ELF file" : "something else");
    done = true;
  });
  iom.stop();
  std::printf("the thread was free: %s\n", ticks > 0 ? "yes" : "no");
  return ticks > 0 ? 0 : 1;
}
