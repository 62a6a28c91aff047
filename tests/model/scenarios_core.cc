// Free cores: none is lost, none belongs to two, and a thread that only gives does not starve one that only takes.
#include <array>
#include <memory>
#include <set>
#include <vector>

#include "sylar/fiber/core_pool.h"
#include "tests/model/checker.h"
#include "tests/model/memory.h"
#include "tests/model/scenarios.h"

namespace sylar::model {
namespace {

constexpr size_t kChunk = 2;

struct FreeCore;

/// A pointer that only one thread at a time may use.
class Link {
 public:
  Link& operator=(FreeCore* core) {
    m_core.set(core);
    return *this;
  }
  operator FreeCore*() const { return m_core.get(); }

 private:
  Var<FreeCore*> m_core;
};

struct FreeCore {
  Link next;
  Link next_chunk;
  Var<int> used;  ///< what its fiber did with it
  bool taken = false;

  Link& nextChunk() { return next_chunk; }
};

struct Cores {
  CoreReserve<FreeCore, ModelMemory> reserve;
  std::vector<std::unique_ptr<FreeCore>> made;

  FreeCore* makeChunk() {
    FreeCore* first = nullptr;
    for (size_t i = 0; i < kChunk; ++i) {
      made.push_back(std::make_unique<FreeCore>());
      made.back()->next = first;
      first = made.back().get();
    }
    return first;
  }

  /// At the end, when no thread keeps any: all that were made are in the reserve, once.
  void requireAll() {
    std::set<FreeCore*> found;
    while (FreeCore* core = reserve.take()) {
      for (; core != nullptr; core = core->next) require(found.insert(core).second, "a free core stands in one list");
    }
    require(found.size() == made.size(), "no core is lost");
  }
};

/// One thread's.
class Cache {
 public:
  explicit Cache(Cores& cores) : m_cores(cores), m_cache(cores.reserve) {}

  FreeCore* take() {
    FreeCore* const core = m_cache.take([this] { return m_cores.makeChunk(); });
    require(!core->taken, "a core belongs to one fiber");
    core->taken = true;
    core->used.set(core->used.get() + 1);
    return core;
  }
  void put(FreeCore* core) {
    core->used.set(core->used.get() + 1);
    core->taken = false;
    m_cache.put(core);
  }

 private:
  Cores& m_cores;
  CoreCache<FreeCore, kChunk, ModelMemory> m_cache;
};

// FM-51: fibers begin on one thread and end on another, one after the other.
void endsElsewhere() {
  constexpr int kFibers = 12;
  // Two alive in the hand-over, two chunks kept by the thread that ends them; a chunk more is made only beyond these.
  constexpr size_t kMost = 2 + 2 * kChunk + kChunk;
  Cores cores;
  Atomic<FreeCore*> moved;
  addThread("begins", [&] {
    Cache cache(cores);
    for (int i = 0; i < kFibers; ++i) {
      FreeCore* const core = cache.take();
      await("the one before is taken", [&] { return moved.peek() == nullptr; });
      moved.exchange(core, std::memory_order_acq_rel);
    }
  });
  addThread("ends", [&] {
    Cache cache(cores);
    for (int i = 0; i < kFibers; ++i) {
      await("a fiber", [&] { return moved.peek() != nullptr; });
      cache.put(moved.exchange(nullptr, std::memory_order_acq_rel));
    }
  });
  runThreads();
  require(cores.made.size() <= kMost, "what ends elsewhere comes back");
  cores.requireAll();
}

// Threads that take from the reserve and pass on to it at once, and end.
void sharedReserve() {
  Cores cores;
  for (const char* name : {"first", "second"}) {
    addThread(name, [&] {
      Cache cache(cores);
      for (const size_t burst : {3 * kChunk, kChunk + 1}) {
        std::vector<FreeCore*> alive;
        for (size_t i = 0; i < burst; ++i) alive.push_back(cache.take());
        for (FreeCore* const core : alive) cache.put(core);
      }
    });
  }
  runThreads();
  cores.requireAll();
}

}  // namespace

std::vector<Scenario> coreScenarios() { return {{"core/ends_elsewhere", endsElsewhere}, {"core/shared_reserve", sharedReserve}}; }

}  // namespace sylar::model
