// Yardstick of topic `fiber`: the same cases on Boost.Fiber, round robin, one thread.
//
//   boost_fibers CASE N        yield, spawn, spawn-many, chain, yield-many, skynet, pairs, live of sylar_fibers
//
// Stacks come from its pool; skynet's have 16 KiB, and its leaves are dispatched depth first, as in Boost's own measurement.
// `pairs` exchanges over buffered channels. `live`: stacks of 128 KiB from malloc, without guards.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/fiber/all.hpp>

#include "bench/support/stopwatch.h"

namespace {

namespace fibers = boost::fibers;
using bench::Stopwatch;

fibers::pooled_fixedsize_stack g_stacks(128 * 1024);
fibers::pooled_fixedsize_stack g_small_stacks(16 * 1024);

template <class Work>
fibers::fiber spawn(Work work) {
  return fibers::fiber(fibers::launch::post, std::allocator_arg, g_stacks, std::move(work));
}

void joinAll(std::vector<fibers::fiber>& all) {
  for (auto& fiber : all) fiber.join();
  all.clear();
}

void yieldTwo(int n) {
  const auto loop = [n] {
    for (int i = 0; i < n; ++i) boost::this_fiber::yield();
  };
  const Stopwatch watch;
  fibers::fiber first = spawn(loop);
  fibers::fiber second = spawn(loop);
  first.join();
  second.join();
  watch.print(2.0 * n);
}

void spawnAndJoin(int n) {
  const Stopwatch watch;
  for (int i = 0; i < n; ++i) spawn([] {}).join();
  watch.print(n);
}

void spawnMany(int n) {
  std::vector<fibers::fiber> all;
  const Stopwatch watch;
  for (int done = 0; done < n; done += 10'000) {
    for (int i = 0; i < 10'000; ++i) all.push_back(spawn([] {}));
    joinAll(all);
  }
  watch.print(n);
}

void link(int left, fibers::promise<void>& whole) {
  if (left == 0) return whole.set_value();
  spawn([left, &whole] { link(left - 1, whole); }).detach();
}

void chain(int n) {
  fibers::promise<void> whole;
  const Stopwatch watch;
  link(n, whole);
  whole.get_future().wait();
  watch.print(n);
}

void yieldMany(int n) {
  constexpr int kFibers = 1000;
  std::vector<fibers::fiber> all;
  const Stopwatch watch;
  for (int i = 0; i < kFibers; ++i) {
    all.push_back(spawn([n] {
      for (int k = 0; k < n / kFibers; ++k) boost::this_fiber::yield();
    }));
  }
  joinAll(all);
  watch.print(n);
}

using Channel = fibers::buffered_channel<int64_t>;

void skynetNode(Channel& result, int64_t number, int64_t leaves) {
  if (leaves == 1) {
    result.push(number);
    return;
  }
  Channel sums(16);
  for (int i = 0; i < 10; ++i) {
    fibers::fiber(fibers::launch::dispatch, std::allocator_arg, g_small_stacks, [&sums, i, number, leaves] {
      skynetNode(sums, number + i * leaves / 10, leaves / 10);
    }).detach();
  }
  int64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += sums.value_pop();
  result.push(sum);
}

void skynet(int n) {
  Channel result(2);
  const Stopwatch watch;
  skynetNode(result, 0, n);
  if (result.value_pop() != int64_t{n} * (n - 1) / 2) std::abort();
  watch.print(n);
}

void pairs(int n) {
  constexpr int kPairs = 8;
  std::vector<fibers::fiber> all;
  const Stopwatch watch;
  for (int i = 0; i < kPairs; ++i) {
    const auto there = std::make_shared<Channel>(2);
    const auto back = std::make_shared<Channel>(2);
    all.push_back(spawn([n, there, back] {
      for (int k = 0; k < n / kPairs; ++k) {
        there->push(k);
        back->value_pop();
      }
    }));
    all.push_back(spawn([n, there, back] {
      for (int k = 0; k < n / kPairs; ++k) back->push(there->value_pop());
    }));
  }
  joinAll(all);
  watch.print(2.0 * n);
}

void live(int n) {
  const int64_t before = bench::residentBytes();
  std::vector<fibers::fiber> all;
  all.reserve(n);
  fibers::promise<void> go;
  const fibers::shared_future<void> gone = go.get_future().share();
  int held = 0;
  for (int i = 0; i < n; ++i) {
    all.emplace_back(fibers::launch::post, std::allocator_arg, fibers::fixedsize_stack(128 * 1024), [&held, gone] {
      ++held;
      gone.wait();
    });
  }
  while (held < n) boost::this_fiber::yield();
  bench::printMemory(bench::residentBytes() - before, n);
  go.set_value();
  joinAll(all);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(int)> cases = {
      {"yield", yieldTwo},       {"spawn", spawnAndJoin}, {"spawn-many", spawnMany}, {"chain", chain},
      {"yield-many", yieldMany}, {"skynet", skynet},      {"pairs", pairs},          {"live", live}};
  const auto found = argc > 2 ? cases.find(argv[1]) : cases.end();
  const int n = argc > 2 ? std::atoi(argv[2]) : 0;
  if (found == cases.end() || n < 1) {
    std::fprintf(stderr, "usage: boost_fibers CASE N\n");
    return 2;
  }
  found->second(n);
}
