// Locks and unlocks a free std::mutex N times, on a plain thread of a process that has two. Prints the ns of a pair. Built twice:
// with the hooks linked and without.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

int main(int argc, char** argv) {
  const long count = argc == 2 ? std::atol(argv[1]) : 0;
  if (count < 1) return 2;
  std::mutex mutex, held;
  held.lock();
  std::thread second([&] { const std::lock_guard lock(held); });  // with one thread only, libc's unlock is no atomic instruction
  const auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < count; ++i) {
    const std::lock_guard lock(mutex);
    asm volatile("" ::: "memory");
  }
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  held.unlock();
  second.join();
  std::printf("{\"ns\": %.4f}\n", time.count() / static_cast<double>(count));
}
