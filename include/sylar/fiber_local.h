// A variable of which each fiber has its own, and each thread outside fibers.
//
//   sylar::FiberLocal<std::string> g_request_id(sylar::Inherit::kYes);     // usually at namespace scope
//
//   *g_request_id = request->getHeader("x-request-id");                    // in the fiber that serves it
//   sylar::go([] { log(*g_request_id); });                                 // the fiber that go() makes begins with a copy
//
// A thread_local belongs to the worker, so all its fibers share it.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace sylar {

/// Whether what go(), TaskGroup::spawn() and blocking() run begins with copies of the caller's values.
enum class Inherit : bool { kNo, kYes };

namespace detail {

/// Only Inherit::kNo, at compile time.
struct NotInherited {
  consteval NotInherited(Inherit inherit) {  // NOLINT(google-explicit-constructor)
    if (inherit != Inherit::kNo) throw "the fiber's value is inherited as a copy, so T must be copyable";
  }
};

using Copy = std::shared_ptr<void> (*)(const void*);

/// The values of one fiber or thread, oldest first.
class FiberLocals {
 public:
  FiberLocals() = default;
  ~FiberLocals() { end(); }
  FiberLocals(const FiberLocals&) = delete;
  FiberLocals& operator=(const FiberLocals&) = delete;

  /// Those of the running fiber or thread; makes them if needed. Throws std::bad_alloc.
  static FiberLocals& here();
  /// The same, or null if there are none yet.
  static FiberLocals* ifAny();
  static uint64_t newKey();
  /// Destroys those of the running fiber or thread. To be called before somebody is told that its function has ended.
  static void endHere() {
    if (FiberLocals* const mine = ifAny()) mine->end();
  }

  /// Returns null if there is none.
  void* find(uint64_t key) const;
  /// Adds a value. `copy` is null unless it is inherited. Throws std::bad_alloc.
  void add(uint64_t key, std::shared_ptr<void> value, Copy copy);
  void remove(uint64_t key);
  /// Destroys all values, the youngest first, and those that their destructors make as well.
  void end();

 private:
  friend class InheritedLocals;
  struct Value {
    uint64_t key;
    std::shared_ptr<void> value;
    Copy copy;
  };
  std::vector<Value> m_values;
};

/// Copies of what the running fiber or thread hands on to a fiber that it makes.
class InheritedLocals {
 public:
  /// Throws std::bad_alloc, and what copying throws.
  InheritedLocals();
  /// Makes them values of the running fiber, at its beginning. Throws std::bad_alloc.
  void install();

 private:
  std::vector<FiberLocals::Value> m_values;
};

}  // namespace detail

/// The value is made, as T(), when a fiber first asks for it, and destroyed on the fiber's own stack when its function has ended,
/// the youngest value first. That of a thread outside fibers ends with the thread, and on a helper thread of blocking() with the
/// function. Values outlive their FiberLocal.
///
/// Thread safety: all calls from any thread; each gets its own value. May suspend: no, but for what T's constructor and destructor
/// do. Source: thread_local, Boost.Fiber's fiber_specific_ptr, Java's InheritableThreadLocal.
template <std::default_initializable T>
class FiberLocal {
 public:
  FiberLocal() = default;
  /// T must be copyable if it is inherited.
  explicit FiberLocal(Inherit inherit) requires std::copy_constructible<T> : m_copy(inherit == Inherit::kYes ? copy : nullptr) {}
  explicit FiberLocal(detail::NotInherited /*inherit*/) requires(!std::copy_constructible<T>) {}
  FiberLocal(const FiberLocal&) = delete;
  FiberLocal& operator=(const FiberLocal&) = delete;

  /// Returns the value of the running fiber. Throws std::bad_alloc, and what T's constructor throws.
  T& operator*() const {
    detail::FiberLocals& values = detail::FiberLocals::here();
    if (void* const found = values.find(m_key)) return *static_cast<T*>(found);
    auto made = std::make_shared<T>();
    T& value = *made;
    values.add(m_key, std::move(made), m_copy);
    return value;
  }
  T* operator->() const { return &**this; }
  /// Returns null if the running fiber has not asked for its value yet.
  T* ifAny() const {
    const detail::FiberLocals* const values = detail::FiberLocals::ifAny();
    return values == nullptr ? nullptr : static_cast<T*>(values->find(m_key));
  }
  /// Destroys the value of the running fiber.
  void reset() const {
    if (detail::FiberLocals* const values = detail::FiberLocals::ifAny()) values->remove(m_key);
  }

 private:
  static std::shared_ptr<void> copy(const void* value) { return std::make_shared<T>(*static_cast<const T*>(value)); }

  const uint64_t m_key = detail::FiberLocals::newKey();
  const detail::Copy m_copy = nullptr;
};

}  // namespace sylar
