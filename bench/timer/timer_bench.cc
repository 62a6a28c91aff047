// What timers cost: every structure, every size, every scenario, and other libraries beside them. Prints a JSON object a line;
// bench/run_timer.py makes a table of them and compares the traces.
//
// --runs: of a million timers; of fewer three times as many.
//
//   timer_bench [--runs N] [--min N] [--max N] [--only STRUCTURE | threads | memory | questions]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/timer/structures.h"
#include "bench/timer/yardsticks.h"
#include "sylar/timer/heap_queue.h"
#include "sylar/timer/ordered_set_queue.h"
#include "sylar/timer/wheel_queue.h"

namespace bench {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;
constexpr int64_t kRange = 60 * kSecond;
int g_runs = 5;

/// CPU time of this thread: other programs on the machine do not count.
double nowNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// How many fired, and in which order.
struct Trace {
  uint64_t count = 0;
  uint64_t hash = 14'695'981'039'346'656'037u;
  void operator()(size_t i) {
    ++count;
    hash = (hash ^ i) * 1'099'511'628'211u;
  }
  std::string text() const { return std::to_string(count) + ":" + std::to_string(hash); }
};

struct Result {
  double ns = std::numeric_limits<double>::max();  ///< an operation, the best of all runs
  std::string trace;
};

void print(const char* structure, size_t n, const char* scenario, const Result& result) {
  std::printf("{\"structure\":\"%s\",\"n\":%zu,\"scenario\":\"%s\",\"ns\":%.2f,\"trace\":\"%s\"}\n", structure, n, scenario,
              result.ns, result.trace.c_str());
  std::fflush(stdout);
}

/// Small: what the benchmark itself reads is not to push the timers out of the cache.
struct Operation {
  uint32_t victim;
  uint32_t delay_ms;
};

/// Random numbers that every structure gets alike, drawn before the clock starts.
struct Draw {
  explicit Draw(size_t n) {
    std::mt19937_64 random(n);
    const size_t count = std::clamp<size_t>(4 * n, 100'000, 1'000'000);
    operations.reserve(count);
    for (size_t i = 0; i < n; ++i) first_ns.push_back(delay(random));
    for (size_t i = 0; i < count; ++i) {
      const auto victim = static_cast<uint32_t>(random() % n);
      operations.push_back({victim, static_cast<uint32_t>(delay(random) / kMs)});
    }
    order.resize(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
  }
  static int64_t delay(std::mt19937_64& random) { return static_cast<int64_t>(1 + random() % (kRange / kMs)) * kMs; }

  std::vector<int64_t> first_ns;
  std::vector<Operation> operations;
  std::vector<size_t> order;  ///< in which the timers are armed: not that of their memory
};

template <class Body>
void best(Result& result, size_t operations, Body body) {
  const double start = nowNs();
  body();
  result.ns = std::min(result.ns, (nowNs() - start) / static_cast<double>(operations));
}

template <class Structure>
void fill(Structure& timers, const Draw& draw) {
  for (const size_t i : draw.order) timers.arm(i, draw.first_ns[i]);
}

template <class Structure>
void cancelAndInsert(Structure& timers, const Draw& draw) {
  for (const Operation& operation : draw.operations) {
    timers.cancel(operation.victim);
    timers.arm(operation.victim, operation.delay_ms * kMs);
  }
}

/// Idle timeouts: each message moves one to the far end.
template <class Structure>
void refresh(Structure& timers, const Draw& draw) {
  for (size_t k = 0; k < draw.operations.size(); ++k) {
    timers.move(draw.operations[k].victim, kRange + static_cast<int64_t>(k / 64) * kMs);
  }
}

template <class Structure>
void measure(const char* name, size_t n) {
  const Draw draw(n);
  const size_t operations = draw.operations.size();
  Result filled, replaced, refreshed, expired, burst, idle, rpc;
  for (int run = 0; run < g_runs; ++run) {
    {
      Structure timers(n);
      best(filled, n, [&] { fill(timers, draw); });
      best(replaced, operations, [&] { cancelAndInsert(timers, draw); });
      Trace trace;
      best(expired, n, [&] {
        for (int64_t now = kMs; now <= kRange; now += kMs) timers.expire(now, std::ref(trace));
      });
      expired.trace = trace.text();
    }
    {
      Structure timers(n);
      fill(timers, draw);
      best(refreshed, operations, [&] { refresh(timers, draw); });
      Trace trace;
      timers.expire(10 * kRange, std::ref(trace));
      refreshed.trace = trace.text();
    }
    {
      Structure timers(n);
      for (const size_t i : draw.order) timers.arm(i, 10 * kRange);
      constexpr int kTicks = 10'000;
      Trace none;
      best(idle, kTicks, [&] {
        for (int64_t tick = 1; tick <= kTicks; ++tick) timers.expire(tick * kMs, std::ref(none));
      });
      idle.trace = none.text();
    }
    {
      Structure timers(n);
      for (const size_t i : draw.order) timers.arm(i, 100 * kMs);
      Trace trace;
      best(burst, n, [&] { timers.expire(100 * kMs, std::ref(trace)); });
      burst.trace = trace.text();
    }
    {  // n requests under way, each with a timeout of 6 s, for 5 s; the oldest is answered when the next is sent
      Structure timers(n);
      for (size_t i = 0; i < n; ++i) timers.arm(i, 6 * kSecond);
      const size_t per_ms = std::max<size_t>(1, n / 5'000);
      Trace trace;
      best(rpc, operations, [&] {
        int64_t now = 0;
        for (size_t k = 0; k < operations; ++k) {
          timers.cancel(k % n);
          timers.arm(k % n, now + 6 * kSecond);
          if (k % per_ms == 0) timers.expire(now += kMs, std::ref(trace));
        }
      });
      timers.expire(10 * kRange, std::ref(trace));
      rpc.trace = trace.text();
    }
  }
  print(name, n, "fill", filled);
  print(name, n, "cancel+insert", replaced);
  print(name, n, "refresh", refreshed);
  print(name, n, "rpc", rpc);
  print(name, n, "expire-random", expired);
  print(name, n, "expire-burst", burst);
  print(name, n, "idle-tick", idle);
}

/// A library with a clock of its own.
template <class Library>
void measureYardstick(const char* name, size_t n) {
  const Draw draw(n);
  const size_t operations = draw.operations.size();
  Result filled, replaced, refreshed, rpc, expired;
  for (int run = 0; run < g_runs; ++run) {
    {
      Library timers(n);
      best(filled, n, [&] { fill(timers, draw); });
      best(replaced, operations, [&] { cancelAndInsert(timers, draw); });
      best(refreshed, operations, [&] { refresh(timers, draw); });
    }
    {
      Library timers(n);
      for (size_t i = 0; i < n; ++i) timers.arm(i, 5 * kSecond);
      best(rpc, operations, [&] {
        for (size_t k = 0; k < operations; ++k) {
          timers.cancel(k % n);
          timers.arm(k % n, 5 * kSecond);
        }
      });
    }
    {
      Library timers(n);
      for (const size_t i : draw.order) timers.arm(i, draw.first_ns[i] / kShrink);
      std::this_thread::sleep_for(kShrunk);
      size_t fired = 0;
      g_fired = [&fired](size_t) { ++fired; };
      best(expired, n, [&] {
        while (fired < n) timers.expireAll();
      });
      g_fired = [](size_t) {};
    }
  }
  print(name, n, "fill", filled);
  print(name, n, "cancel+insert", replaced);
  print(name, n, "refresh", refreshed);
  print(name, n, "rpc", rpc);
  print(name, n, "expire-random", expired);
}

/// Design 002: 100 000 requests a second with a timeout of 5 s each, answered after 50 ms; one in a hundred is not. One second.
template <class Structure>
void measureRequests(const char* name) {
  constexpr size_t kSeconds = 8, kPerMs = 100, kAnswerMs = 50, kSlots = kSeconds * 1'000 * kPerMs;
  Result result;
  for (int run = 0; run < std::min(g_runs, 3); ++run) {
    Structure timers(kSlots);
    Trace trace;
    best(result, kSlots, [&] {
      for (size_t ms = 0; ms < kSeconds * 1'000; ++ms) {
        const auto now = static_cast<int64_t>(ms) * kMs;
        timers.expire(now, std::ref(trace));
        for (size_t k = ms * kPerMs; k < (ms + 1) * kPerMs; ++k) timers.arm(k, now + 5 * kSecond);
        if (ms < kAnswerMs) continue;
        for (size_t k = (ms - kAnswerMs) * kPerMs; k < (ms - kAnswerMs + 1) * kPerMs; ++k) {
          if (k % 100 != 0) timers.cancel(k);
        }
      }
    });
    result.trace = trace.text();
  }
  print(name, 100'000, "requests", result);
}

/// One and two threads at once, each with timers of its own: what a pair of operations costs the slower of them.
template <class Structure>
void measureThreads(const char* name) {
  constexpr size_t kTimers = 10'000;
  const Draw draw(kTimers);
  for (const size_t threads : {1, 2}) {
    std::vector<Result> results(threads);
    std::vector<std::thread> running;
    for (Result& result : results) {
      running.emplace_back([&draw, &result] {
        Structure timers(kTimers);
        fill(timers, draw);
        for (int run = 0; run < 20 * g_runs; ++run) best(result, draw.operations.size(), [&] { cancelAndInsert(timers, draw); });
      });
    }
    for (auto& thread : running) thread.join();
    std::sort(results.begin(), results.end(), [](const Result& a, const Result& b) { return a.ns > b.ns; });
    print(name, threads, "threads", results.front());
  }
}

long residentKb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return -1;
}

/// C-56: ten million times, arm for an hour and cancel. What stays, in KiB.
template <class Structure>
void measureMemory(const char* name) {
  Structure timers(1);
  timers.arm(0, 3'600 * kSecond);
  timers.cancel(0);
  const long before = residentKb();
  for (int k = 0; k < 10'000'000; ++k) {
    timers.arm(0, 3'600 * kSecond);
    timers.cancel(0);
  }
  print(name, 10'000'000, "memory-kib", {static_cast<double>(residentKb() - before), {}});
}

/// Design 001: how late, in ticks, timers are that are set over all five levels and beyond. Exact is 0.
template <int64_t TickNs>
void measureExactness(const char* name) {
  sylar::BasicWheelQueue<TickNs> wheel;
  std::mt19937_64 random(1);
  std::vector<sylar::TimerNode> nodes(100'000);
  for (auto& node : nodes) wheel.insert(node, static_cast<int64_t>(random() >> (31 + random() % 33)) * TickNs);
  int64_t latest = 0;
  while (!wheel.empty()) {
    const int64_t now = wheel.nextDue();
    sylar::TimerList due;
    wheel.expire(now, 1'000'000, due);
    while (const sylar::TimerNode* node = due.pop()) latest = std::max(latest, (now - node->deadline_ns) / TickNs);
  }
  print(name, nodes.size(), "late-ticks", {static_cast<double>(latest), {}});
}

struct Candidate {
  const char* name;
  void (*measure)(const char* name, size_t n);
};

using Kind = sylar::TimerQueueKind;
constexpr Candidate kCandidates[] = {
    {"set", measure<OfQueue<sylar::OrderedSetQueue>>},
    {"2-heap", measure<OfQueue<sylar::HeapQueue<2>>>},
    {"4-heap", measure<OfQueue<sylar::HeapQueue<4>>>},
    {"wheel", measure<OfQueue<sylar::WheelQueue>>},
    {"lazy/4-heap", measure<OfLazy>},
    {"multimap", measure<OfMultimap>},
    {"id/4-heap", measure<OfIds<Kind::kFourAryHeap>>},
    {"id/wheel", measure<OfIds<Kind::kWheel>>},
    {"ptr/4-heap", measure<OfTimers<Kind::kFourAryHeap>>},
    {"ptr/wheel", measure<OfTimers<Kind::kWheel>>},
    {"libev", measureYardstick<OfLibev>},
    {"libuv", measureYardstick<OfLibuv>},
    {"asio", measureYardstick<OfAsio>},
};

}  // namespace

int run(int argc, char** argv) {
  size_t min = 0, max = 1'000'000;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--runs") == 0) g_runs = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--min") == 0) min = static_cast<size_t>(std::atoll(argv[i + 1]));
    if (std::strcmp(argv[i], "--max") == 0) max = static_cast<size_t>(std::atoll(argv[i + 1]));
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
  }
  const int runs = g_runs;
  for (const size_t n : {size_t{1'000}, size_t{50'000}, size_t{100'000}, size_t{1'000'000}}) {
    g_runs = n < 1'000'000 ? 3 * runs : runs;
    for (const Candidate& candidate : kCandidates) {
      if (n >= min && n <= max && (only.empty() || only == candidate.name)) candidate.measure(candidate.name, n);
    }
  }
  g_runs = runs;
  if (only.empty() || only == "threads") {
    measureThreads<OfQueue<sylar::WheelQueue>>("wheel");
    measureThreads<OfIds<Kind::kWheel>>("id/wheel");
    measureThreads<OfIds<Kind::kFourAryHeap>>("id/4-heap");
    measureThreads<OfMultimap>("multimap");
  }
  if (only.empty() || only == "memory") {
    measureMemory<OfIds<Kind::kFourAryHeap>>("id/4-heap");
    measureMemory<OfIds<Kind::kWheel>>("id/wheel");
    measureMemory<OfTimers<Kind::kFourAryHeap>>("ptr/4-heap");
    measureMemory<OfMultimap>("multimap");
  }
  if (!only.empty() && only != "questions") return 0;
  measureRequests<OfIds<Kind::kWheel>>("id/wheel");
  measureRequests<OfIds<Kind::kFourAryHeap>>("id/4-heap");
  measureRequests<OfMultimap>("multimap");
  measureExactness<1'000'000>("wheel");
  measureExactness<10'000'000>("wheel 10 ms");
  return 0;
}

}  // namespace bench

int main(int argc, char** argv) { return bench::run(argc, argv); }
