// The checker's inside, as the model's memory sees it: places, messages, views, and one step at a time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tests/model/checker.h"

namespace sylar::model {

inline constexpr size_t kMaxThreads = 6;  // the scenario itself is one
inline constexpr size_t kMaxPlaces = 64;  // a bit each

using PlaceId = uint32_t;

/// The knowledge of a thread: how far it has seen each thread (a vector clock), and the newest store that it knows of each place.
struct View {
  std::array<uint32_t, kMaxThreads> clock{};
  std::array<int16_t, kMaxPlaces> seen{};

  void join(const View& other) {
    for (size_t i = 0; i < kMaxThreads; ++i) clock[i] = std::max(clock[i], other.clock[i]);
    for (size_t i = 0; i < kMaxPlaces; ++i) seen[i] = std::max(seen[i], other.seen[i]);
  }
};

constexpr bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst ||
         order == std::memory_order_consume;
}
constexpr bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

/// The accesses to one place. All of a run's places are made again in each execution, in the same order.
namespace access {

PlaceId make(uint64_t value);
uint64_t load(PlaceId place, std::memory_order order, Where where);
void store(PlaceId place, uint64_t value, std::memory_order order, Where where);
/// `value` replaces what is there, which is returned.
uint64_t exchange(PlaceId place, uint64_t value, std::memory_order order, Where where);
uint64_t add(PlaceId place, uint64_t value, uint64_t mask, std::memory_order order, Where where);
uint64_t bitOr(PlaceId place, uint64_t value, std::memory_order order, Where where);
bool compareExchange(PlaceId place, uint64_t& expected, uint64_t desired, std::memory_order success, std::memory_order failure,
                     Where where);
/// The newest value; no step.
uint64_t peek(PlaceId place);

/// A lock that is a place: 0 is free.
void lock(PlaceId place, Where where);
bool tryLock(PlaceId place, Where where);
void unlock(PlaceId place, Where where);         ///< by an atomic exchange, as a mutex that may have waiters
void unlockByStore(PlaceId place, Where where);  ///< by a store, as a spinlock: no fence

/// A full barrier of every thread, wherever it is: what each has stored, all see from here on.
void barrierOfAll(Where where);

/// The calling thread has looked in vain: it goes on when something has changed.
void pause(Where where);

}  // namespace access

/// The history of a variable that is not atomic.
class Unshared {
 public:
  void onRead(Where where);
  void onWrite(Where where);

 private:
  uint32_t m_writer = 0;
  uint32_t m_written = 0;  // the writer's clock
  std::array<uint32_t, kMaxThreads> m_read{};
};

}  // namespace sylar::model
