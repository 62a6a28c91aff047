// The cases of topic `sync`, which measure the cost of waiting, as a user writes them.
//
//   sylar_sync CASE N [WORKERS]        prints one line of JSON: ns of an operation by the wall and by all threads' CPUs
//
// lock             a fiber locks and unlocks a sylar::Mutex                              operation: one lock and unlock
// contended        a fiber on each worker does, computes 100 ns in it, 100 ns after it   the same
// std-lock, std-contended    with a std::mutex, which blocks the worker                  the same
// channel          two fibers send each other a number over two unbuffered channels      one round trip
// channel-apart    the same, each fiber on a worker of its own (WORKERS = 2)             one round trip
// tasks            TaskGroups of 1 000 empty tasks                                       one task
// select           a fiber selects over four channels, another feeds them in turn        one message
//
// The hooks are not linked, because a std::mutex under them is one for fibers.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <optional>

#include "bench/support/fibers.h"
#include "bench/support/stopwatch.h"
#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/select.h"
#include "sylar/sync/task_group.h"

namespace {

using bench::onEachWorker;
using bench::spawn;
using sylar::Channel;

/// Computes that long while it has the lock, and again when it has not.
template <class Mutex, int kBusyNs>
void lock(int n, int workers) {
  Mutex mutex;
  uint64_t count = 0;
  onEachWorker(workers, static_cast<double>(n) * workers, [&, n] {
    for (int i = 0; i < n; ++i) {
      mutex.lock();
      ++count;
      bench::compute(kBusyNs);
      mutex.unlock();
      bench::compute(kBusyNs);
    }
  });
  if (count != static_cast<uint64_t>(n) * workers) std::abort();
}

struct Line {
  Channel<int> there;
  Channel<int> back;

  void ask(int n) {
    for (int i = 0; i < n; ++i) {
      there.send(i);
      (void)back.receive();
    }
  }
  void answer(int n) {
    for (int i = 0; i < n; ++i) back.send(*there.receive());
  }
};

/// The scheduler places the fibers.
void channel(int n, int workers) {
  sylar::IOManager iom(workers, false, "bench");
  std::latch end(1);
  const bench::Stopwatch watch;
  iom.schedule([&, n] {
    Line line;
    const auto other = spawn([&line, n] { line.answer(n); });
    line.ask(n);
    other->join();
    end.count_down();
  });
  end.wait();
  watch.print(n);
}

void channelApart(int n, int) {
  Line line;
  std::atomic<bool> asks{true};
  onEachWorker(2, n, [&, n] { asks.exchange(false) ? line.ask(n) : line.answer(n); });
}

void tasks(int n, int workers) {
  constexpr int kTasks = 1000;
  sylar::IOManager iom(workers, false, "bench");
  std::latch end(1);
  const bench::Stopwatch watch;
  iom.schedule([&, n] {
    for (int done = 0; done < n; done += kTasks) {
      sylar::TaskGroup group;
      for (int i = 0; i < kTasks; ++i) group.spawn([] {});
      group.join();
    }
    end.count_down();
  });
  end.wait();
  watch.print(n);
}

void select(int n, int) {
  onEachWorker(1, n, [n] {
    std::array<Channel<int>, 4> channels;
    const auto feeder = bench::spawnHere([&channels, n] {
      for (int i = 0; i < n; ++i) channels[i % 4].send(i);
    });
    int64_t sum = 0;
    const auto add = [&sum](std::optional<int> value) { sum += *value; };
    for (int i = 0; i < n; ++i) {
      sylar::select(sylar::onReceive(channels[0], add), sylar::onReceive(channels[1], add), sylar::onReceive(channels[2], add),
                    sylar::onReceive(channels[3], add));
    }
    feeder->join();
    if (sum != static_cast<int64_t>(n) * (n - 1) / 2) std::abort();
  });
}

}  // namespace

int main(int argc, char** argv) {
  return bench::runCase(argc, argv,
                        {{"lock", lock<sylar::Mutex, 0>},
                         {"std-lock", lock<std::mutex, 0>},
                         {"contended", lock<sylar::Mutex, 100>},
                         {"std-contended", lock<std::mutex, 100>},
                         {"channel", channel},
                         {"channel-apart", channelApart},
                         {"tasks", tasks},
                         {"select", select}});
}
