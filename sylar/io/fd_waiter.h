// Internal. The waiters of a descriptor: fibers, and callbacks of addEvent.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/fiber/queue_node.h"
#include "sylar/fiber/wait_word.h"

namespace sylar::detail {

/// One wait of a fiber or a callback for one direction of a descriptor. A callback sets `fire` and leaves `waker` empty; a
/// fiber's waiter lies on its stack. Touched only under the entry's lock, except for a callback that was claimed.
template <class Engine>
struct FdWaiter {
  typename Engine::Waker waker;
  Engine* engine = nullptr;  ///< of the waiting worker; the registration moves there if its present engine ends
  void (*fire)(FdWaiter*, WakeReason) = nullptr;
  uint32_t events = ~0U;  ///< only these epoll events wake it
  bool linked = false;
  FdWaiter* next = nullptr;
  FdWaiter* prev = nullptr;
};

/// Collects waiters that are claimed under the lock for one reason, and delivers them after it, oldest first.
template <class Engine>
class Claimed {
 public:
  explicit Claimed(WakeReason reason, bool by_mail = false)
      : m_reason(reason), m_by_mail(by_mail || reason == WakeReason::kClosed) {}
  ~Claimed() { deliver(); }
  void add(FdWaiter<Engine>& waiter) {
    SYLAR_DCHECK(!waiter.linked);
    if (waiter.fire != nullptr) {
      waiter.next = nullptr;
      (m_callbacks == nullptr ? m_callbacks : m_last_callback->next) = &waiter;
      m_last_callback = &waiter;
    } else if (auto* const core = waiter.waker.core; waiter.waker.claim(m_reason)) {
      m_cores.push(core);
    }
  }
  void deliver() {
    while (QueueNode* node = m_cores.pop()) {
      auto& core = *static_cast<decltype(Engine::Waker::core)>(node);
      m_by_mail ? Engine::Waker::deliverByMail(core) : Engine::Waker::deliver(core);
    }
    while (FdWaiter<Engine>* waiter = m_callbacks) {
      m_callbacks = waiter->next;
      waiter->fire(waiter, m_reason);
    }
  }

 private:
  const WakeReason m_reason;
  const bool m_by_mail;
  NodeList m_cores;
  FdWaiter<Engine>* m_callbacks = nullptr;
  FdWaiter<Engine>* m_last_callback = nullptr;
};

}  // namespace sylar::detail
