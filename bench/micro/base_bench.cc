// What the smallest parts of `base` cost, each beside what it replaces: they lie on the path of every request.
#include <benchmark/benchmark.h>
#include <time.h>

#include <mutex>
#include <thread>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"

namespace {

template <class Mutex>
void lockUnlock(benchmark::State& state) {
  std::thread([] {}).join();  // libc drops the atomics from the mutexes of a process that never had a second thread
  static Mutex mutex;
  for ([[maybe_unused]] auto _ : state) {
    mutex.lock();
    benchmark::ClobberMemory();
    mutex.unlock();
  }
}
BENCHMARK(lockUnlock<sylar::OsMutex>);
BENCHMARK(lockUnlock<sylar::Spinlock>);
BENCHMARK(lockUnlock<std::mutex>);

void steadyClockNow(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(sylar::steadyClock().nowNs());
}
BENCHMARK(steadyClockNow);

void clockGettime(benchmark::State& state) {
  timespec time = {};
  for ([[maybe_unused]] auto _ : state) {
    clock_gettime(CLOCK_MONOTONIC, &time);
    benchmark::DoNotOptimize(time);
  }
}
BENCHMARK(clockGettime);

void threadIdCached(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(sylar::sys::threadId());
}
BENCHMARK(threadIdCached);

void systemCall(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(sylar::sys::call(SYS_gettid));
}
BENCHMARK(systemCall);

void systemCallThroughLibc(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(gettid());
}
BENCHMARK(systemCallThroughLibc);

}  // namespace
