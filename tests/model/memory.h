// The memory that the production headers run on in the model: the same names as sylar::StdMemory.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sylar/base/memory.h"
#include "tests/model/engine.h"

namespace sylar::model {

struct ModelMemory;

template <class T>
class Atomic {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  static constexpr auto kSeqCst = std::memory_order_seq_cst;

 public:
  Atomic(T value = T{}) : m_place(access::make(bits(value))) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order order = kSeqCst, Where where = Where::current()) const {
    return value(access::load(m_place, order, where));
  }
  void store(T desired, std::memory_order order = kSeqCst, Where where = Where::current()) {
    access::store(m_place, bits(desired), order, where);
  }
  T exchange(T desired, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return value(access::exchange(m_place, bits(desired), order, where));
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure,
                               Where where = Where::current()) {
    uint64_t seen = bits(expected);
    if (access::compareExchange(m_place, seen, bits(desired), success, failure, where)) return true;
    expected = value(seen);
    return false;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure,
                             Where where = Where::current()) {
    return compare_exchange_strong(expected, desired, success, failure, where);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return compare_exchange_strong(expected, desired, order, onFailure(order), where);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return compare_exchange_strong(expected, desired, order, onFailure(order), where);
  }
  T fetch_add(T operand, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return value(access::add(m_place, bits(operand), kMask, order, where));
  }
  T fetch_sub(T operand, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return value(access::add(m_place, ~bits(operand) + 1, kMask, order, where));
  }
  T fetch_or(T operand, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return value(access::bitOr(m_place, bits(operand), order, where));
  }

  /// The newest value; no step. For conditions of await() and for checks after the end.
  T peek() const { return value(access::peek(m_place)); }

 private:
  static constexpr uint64_t kMask = sizeof(T) == sizeof(uint64_t) ? ~uint64_t{0} : (uint64_t{1} << (8 * (sizeof(T) % 8))) - 1;

  static constexpr std::memory_order onFailure(std::memory_order order) {
    return order == std::memory_order_acq_rel   ? std::memory_order_acquire
           : order == std::memory_order_release ? std::memory_order_relaxed
                                                : order;
  }
  static uint64_t bits(T from) {
    uint64_t to = 0;
    std::memcpy(&to, &from, sizeof from);
    return to;
  }
  static T value(uint64_t from) {
    T to;
    std::memcpy(&to, &from, sizeof to);
    return to;
  }

  const PlaceId m_place;
  uint32_t m_wakes = 0;  // of threads that sleep on it
  friend struct ModelMemory;
};

/// A variable that is not atomic: accesses of two threads must be ordered, or the run fails.
template <class T>
class Var {
 public:
  Var(T value = T{}) : m_value(value) {}
  T get(Where where = Where::current()) const {
    m_history.onRead(where);
    return m_value;
  }
  void set(T value, Where where = Where::current()) {
    m_history.onWrite(where);
    m_value = value;
  }

 private:
  T m_value;
  mutable Unshared m_history;
};

class SYLAR_CAPABILITY("mutex") Mutex {
 public:
  void lock(Where where = Where::current()) SYLAR_ACQUIRE() { access::lock(m_place, where); }
  bool tryLock(Where where = Where::current()) SYLAR_TRY_ACQUIRE(true) { return access::tryLock(m_place, where); }
  void unlock(Where where = Where::current()) SYLAR_RELEASE() { access::unlock(m_place, where); }

 private:
  const PlaceId m_place = access::make(0);
};

class SYLAR_CAPABILITY("mutex") Spinlock {
 public:
  void lock(Where where = Where::current()) SYLAR_ACQUIRE() { access::lock(m_place, where); }
  bool tryLock(Where where = Where::current()) SYLAR_TRY_ACQUIRE(true) { return access::tryLock(m_place, where); }
  void unlock(Where where = Where::current()) SYLAR_RELEASE() { access::unlockByStore(m_place, where); }

 private:
  const PlaceId m_place = access::make(0);
};

struct ModelMemory {
  template <class T>
  using Atomic = model::Atomic<T>;
  using Mutex = model::Mutex;
  using Spinlock = model::Spinlock;
  struct Touched {
    void write(Where where = Where::current()) { history.onWrite(where); }
    Unshared history;
  };

  static void relax(Where where = Where::current()) { access::pause(where); }
  static void yield(Where where = Where::current()) { access::pause(where); }
  static void lightBarrier() {}
  static bool heavyBarrier(Where where = Where::current()) {
    access::barrierOfAll(where);
    return true;
  }
  /// The kernel compares, and falls asleep, in one step. The code must not rely on the order that a wake-up makes.
  static void futexWait(Atomic<uint32_t>& word, uint32_t expected, Where where = Where::current()) {
    if (word.fetch_add(0, std::memory_order_relaxed, where) != expected) return;
    await(
        "a futex", [&word, wakes = word.m_wakes] { return word.m_wakes != wakes; }, where);
  }
  /// The deadline may pass at once or later.
  [[nodiscard]] static bool futexWaitUntil(Atomic<uint32_t>& word, uint32_t expected, Deadline deadline,
                                           Where where = Where::current()) {
    if (word.fetch_add(0, std::memory_order_relaxed, where) != expected) return true;
    const uint32_t wakes = word.m_wakes;
    await(
        "a futex", [&] { return word.m_wakes != wakes || !deadline.isNever(); }, where);
    return word.m_wakes != wakes;
  }
  /// Of the one thread that sleeps there.
  static void futexWakeOne(Atomic<uint32_t>& word, Where where = Where::current()) { futexWakeAll(word, where); }
  static void futexWakeAll(Atomic<uint32_t>& word, Where where = Where::current()) {
    word.fetch_add(0, std::memory_order_relaxed, where);
    ++word.m_wakes;
  }

  static uint32_t self() { return model::self() + 1; }
  static ThreadMarks& marks();
};

}  // namespace sylar::model
