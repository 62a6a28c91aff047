// What fibers cost: the cases of topic `fiber`, as a user writes them.
//
//   sylar_fibers CASE N [WORKERS [own]]  prints one line of JSON: ns of an operation by the wall and by all threads' CPUs
//
// own: each fiber runs as a thread of libc's of its own (FiberIdentity::kOwn).
//
// yield        two fibers on one worker yield to each other                              operation: one way
// spawn        make a fiber, schedule it, join it                                        one fiber
// spawn-many   10 000 at a time, then all are joined                                     one fiber
// chain        each fiber schedules the next                                             one fiber
// yield-many   1 000 fibers yield in turn                                                one yield
// skynet       N leaves, ten children a node, stacks of 16 KiB                           one leaf
// pairs        8 pairs a worker, each holds until the other schedules it                 one message
// wake         the same, one pair whose fibers are on different workers (WORKERS = 2)    one message
// wake-busy    the same, and another fiber of each worker yields all the time            one message
// sockets      8 pairs a worker echo 64 B over a socketpair, plain read and write        one round trip
// tree         a binary tree of fibers, 2 us of computing in each leaf                   one leaf
// timers       one fiber a worker arms a timer of 1 s and stops it                       one timer
// live         N fibers of default size live at once; bytes resident for each, then all end
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <vector>

#include "bench/support/fibers.h"
#include "bench/support/loopback.h"
#include "bench/support/stopwatch.h"
#include "sylar/iomanager.h"
#include "sylar/util.h"

namespace {

using bench::joinAll;
using bench::onEachWorker;
using bench::spawn;
using bench::spawnHere;
using bench::Stopwatch;
using sylar::Fiber;
using sylar::IOManager;

constexpr int kPairs = 8;

void yieldTwo(int n, int) {
  onEachWorker(1, 2.0 * n, [n] {
    const auto loop = [n] {
      for (int i = 0; i < n; ++i) Fiber::YieldToReady();
    };
    joinAll({spawnHere(loop), spawnHere(loop)});
  });
}

void spawnAndJoin(int n, int) {
  onEachWorker(1, n, [n] {
    for (int i = 0; i < n; ++i) spawn([] {})->join();
  });
}

void spawnMany(int n, int) {
  onEachWorker(1, n, [n] {
    std::vector<Fiber::ptr> fibers;
    for (int done = 0; done < n; done += 10'000) {
      for (int i = 0; i < 10'000; ++i) fibers.push_back(spawn([] {}));
      joinAll(fibers);
      fibers.clear();
    }
  });
}

void chain(int n, int) {
  onEachWorker(1, n, [n] {
    const auto whole = std::make_shared<Fiber>([] {});  // is scheduled by the last of the chain
    std::function<void(int)> link = [&](int left) {
      if (left == 0) {
        IOManager::GetThis()->schedule(whole);
      } else {
        IOManager::GetThis()->schedule([&link, left] { link(left - 1); });
      }
    };
    link(n);
    whole->join();
  });
}

void yieldMany(int n, int) {
  constexpr int kFibers = 1000;
  onEachWorker(1, n, [n] {
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < kFibers; ++i) {
      fibers.push_back(spawnHere([n] {
        for (int k = 0; k < n / kFibers; ++k) Fiber::YieldToReady();
      }));
    }
    joinAll(fibers);
  });
}

int64_t skynetNode(int64_t number, int64_t leaves) {
  if (leaves == 1) return number;
  std::array<int64_t, 10> sums;
  std::array<Fiber::ptr, 10> children;
  for (int i = 0; i < 10; ++i) {
    children[i] = spawn([&sums, i, number, leaves] { sums[i] = skynetNode(number + i * leaves / 10, leaves / 10); }, 16 * 1024);
  }
  int64_t sum = 0;
  for (int i = 0; i < 10; ++i) {
    children[i]->join();
    sum += sums[i];
  }
  return sum;
}

void skynet(int n, int) {
  onEachWorker(1, n, [n] {
    const int64_t leaves = n;
    if (skynetNode(0, leaves) != leaves * (leaves - 1) / 2) std::abort();  // needs a power of ten
  });
}

/// Two fibers of which each holds until the other schedules it; the first starts the second, on `second_thread`.
std::vector<Fiber::ptr> holdInTurn(int n, int second_thread) {
  IOManager* const iom = IOManager::GetThis();
  const auto both = std::make_shared<std::array<std::weak_ptr<Fiber>, 2>>();
  const auto first = std::make_shared<Fiber>([n, iom, both, second_thread] {
    const Fiber::ptr other = (*both)[1].lock();
    for (int i = 0; i < n; ++i) {
      iom->schedule(other, i == 0 ? second_thread : -1);
      Fiber::YieldToHold();
    }
  });
  const auto second = std::make_shared<Fiber>([n, iom, both] {
    const Fiber::ptr other = (*both)[0].lock();
    for (int i = 0; i < n; ++i) {
      iom->schedule(other);
      if (i + 1 < n) Fiber::YieldToHold();
    }
  });
  *both = {first, second};
  iom->schedule(first, sylar::GetThreadId());
  return {first, second};
}

void pairs(int n, int workers) {
  onEachWorker(workers, 2.0 * n * workers, [n] {
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < kPairs; ++i) {
      for (auto& fiber : holdInTurn(n / kPairs, sylar::GetThreadId())) fibers.push_back(std::move(fiber));
    }
    joinAll(fibers);
  });
}

void wakeOther(int n, bool busy) {
  static std::atomic<int> s_first{0};
  static std::atomic<bool> s_over{false};
  onEachWorker(2, 2.0 * n, [n, busy] {
    if (busy) {
      (void)spawnHere([] {
        while (!s_over) Fiber::YieldToReady();
      });
    }
    const int here = sylar::GetThreadId();
    int other = 0;
    if (s_first.compare_exchange_strong(other, here)) return;  // the first one's worker is the other one's
    joinAll(holdInTurn(n, other));
    s_over = true;
  });
}
void wake(int n, int) { wakeOther(n, false); }
void wakeBusy(int n, int) { wakeOther(n, true); }

void transfer(int fd, bool receives) {
  char message[64] = {};
  if (receives ? read(fd, message, sizeof message) != sizeof message : write(fd, message, sizeof message) != sizeof message) {
    bench::die("socketpair");
  }
}

void sockets(int n, int workers) {
  onEachWorker(workers, static_cast<double>(n) * workers, [n] {
    std::vector<Fiber::ptr> fibers;
    for (int i = 0; i < kPairs; ++i) {
      int fds[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) bench::die("socketpair");
      for (const bool asks : {true, false}) {
        fibers.push_back(spawnHere([n, fd = fds[asks ? 0 : 1], asks] {
          for (int k = 0; k < n / kPairs; ++k) {
            transfer(fd, !asks);
            transfer(fd, asks);
          }
        }));
      }
    }
    joinAll(fibers);
  });
}

void treeNode(int leaves) {
  if (leaves == 1) return bench::compute(2000);
  joinAll({spawn([leaves] { treeNode(leaves / 2); }), spawn([leaves] { treeNode(leaves - leaves / 2); })});
}

void tree(int n, int workers) {
  IOManager iom(bench::options(workers));
  std::latch end(1);
  const Stopwatch watch;
  iom.schedule([&] {
    treeNode(n);
    end.count_down();
  });
  end.wait();
  watch.print(n);
}

void timers(int n, int workers) {
  onEachWorker(workers, static_cast<double>(n) * workers, [n] {
    IOManager* const iom = IOManager::GetThis();
    for (int i = 0; i < n; ++i) iom->stopTimer(iom->startTimer(std::chrono::seconds(1), [] {}));
  });
}

void live(int n, int) {
  IOManager iom(bench::options(1));
  std::latch end(1);
  iom.schedule([&] {
    const int64_t before = bench::residentBytes();
    std::vector<Fiber::ptr> fibers;
    fibers.reserve(n);
    int held = 0;
    for (int i = 0; i < n; ++i) {
      fibers.push_back(spawnHere([&held] {
        ++held;
        Fiber::YieldToHold();
      }));
    }
    while (held < n) Fiber::YieldToReady();
    bench::printMemory(bench::residentBytes() - before, n);
    for (const auto& fiber : fibers) IOManager::GetThis()->schedule(fiber);
    joinAll(fibers);
    end.count_down();
  });
  end.wait();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::runCase(argc, argv,
                        {{"yield", yieldTwo},
                         {"spawn", spawnAndJoin},
                         {"spawn-many", spawnMany},
                         {"chain", chain},
                         {"yield-many", yieldMany},
                         {"skynet", skynet},
                         {"pairs", pairs},
                         {"wake", wake},
                         {"wake-busy", wakeBusy},
                         {"sockets", sockets},
                         {"tree", tree},
                         {"timers", timers},
                         {"live", live}});
}
