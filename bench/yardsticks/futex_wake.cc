// Yardstick: two threads that wake each other in turn by a futex, as tight as one writes it by hand. Each message costs a system
// call that wakes and one that waits, and the way from one core to the other.
//
//   futex_wake wake N     one message
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "bench/support/stopwatch.h"

namespace {

using Word = std::atomic<uint32_t>;

void awaitChange(Word& word, uint32_t from) {
  while (word.load() == from) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, from, nullptr, nullptr, 0);
}
void post(Word& word) {
  word.fetch_add(1);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 2 ? std::atoi(argv[2]) : 0;
  if (n < 1) {
    std::fprintf(stderr, "usage: %s wake N\n", argv[0]);
    return 2;
  }
  Word there = 0, back = 0;
  const bench::Stopwatch watch;
  std::thread other([&] {
    for (int i = 0; i < n; ++i) {
      awaitChange(there, static_cast<uint32_t>(i));
      post(back);
    }
  });
  for (int i = 0; i < n; ++i) {
    post(there);
    awaitChange(back, static_cast<uint32_t>(i));
  }
  other.join();
  watch.print(2.0 * n);
}
