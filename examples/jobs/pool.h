// Connections to a store, one for each call that is under way. Client libraries want one connection for each fiber.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "job.h"
#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/mutex.h"

namespace jobs {

/// A `Connection` is made from a `Target`; both its constructor and its calls throw StoreError. Thread safety: with() from any
/// thread, in fibers.
template <class Connection, class Target>
class Pool {
 public:
  explicit Pool(Target target) : m_target(std::move(target)) {}

  /// Returns what `call` returns for a connection that nobody else has. A connection that was idle may have died since; then the
  /// call is made once more, on a new one, and so must be right when it is made twice. Waits for at most ten seconds. May suspend:
  /// yes.
  template <class Call>
  auto with(Call call) {
    return sylar::withDeadline(sylar::Deadline::after(kPatience), [&] {
      const Slot slot(m_slots);
      if (auto idle = take()) {
        try {
          return use(std::move(idle), call);
        } catch (const ConnectionLost&) {
          forget();  // the others have died with it
        }
      }
      return use(std::make_unique<Connection>(m_target), call);
    });
  }

  /// A connection of the caller's own.
  std::unique_ptr<Connection> connect() const {
    return sylar::withDeadline(sylar::Deadline::after(kPatience), [this] { return std::make_unique<Connection>(m_target); });
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(10);
  static constexpr size_t kMostConnections = 16;

  struct Slot {
    explicit Slot(sylar::Semaphore& semaphore) : slots(semaphore) {
      if (!slots.wait()) throw StoreError("all connections to the store are busy");
    }
    ~Slot() { slots.notify(); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    sylar::Semaphore& slots;
  };

  /// Connections that have failed are closed, not kept.
  template <class Call>
  auto use(std::unique_ptr<Connection> connection, Call& call) {
    auto result = call(*connection);
    const std::lock_guard guard(m_lock);
    m_idle.push_back(std::move(connection));
    return result;
  }

  std::unique_ptr<Connection> take() {
    const std::lock_guard guard(m_lock);
    if (m_idle.empty()) return nullptr;
    auto connection = std::move(m_idle.back());
    m_idle.pop_back();
    return connection;
  }

  void forget() {
    std::vector<std::unique_ptr<Connection>> dead;
    const std::lock_guard guard(m_lock);
    dead.swap(m_idle);
  }

  const Target m_target;
  sylar::Semaphore m_slots{kMostConnections};
  std::mutex m_lock;  // nothing suspends while it is held
  std::vector<std::unique_ptr<Connection>> m_idle;
};

}  // namespace jobs
