// Internal. Memory that serves one request and is passed from request to request within a thread, across connections. Memory that
// served the last request is still in the processor's cache, and a connection that waits holds none.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"
#include "sylar/base/worker_local.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar::http::detail {

using sylar::detail::ofWorker;

/// The free slots of each thread. Fibers that have borrowed threads share those of their worker.
///
/// Thread safety: take() from any thread, and give() from any other. The functions are not inlined, since a fiber may be on another
/// thread after a wait. May suspend: no.
template <class Slot>
class SlotPool {
 public:
  /// Returns a slot in the state in which it was given back, or a new one. May throw std::bad_alloc.
  [[gnu::noinline]] static Slot* take() {
    const tsan::Exempt of_this_thread;
    FreeList* const free = ofWorker(t_free);
    if (free == nullptr || free->count == 0) return new Slot;
    Slot* const slot = free->slots[--free->count];
    tsan::acquire(slot);
    return slot;
  }

  [[gnu::noinline]] static void give(Slot* slot) {
    const tsan::Exempt of_this_thread;
    FreeList* const free = freeList();
    if (free == nullptr || free->count == kMost) {
      delete slot;
      return;
    }
    tsan::release(slot);  // orders the fiber that has used it before the one that will
    free->slots[free->count++] = slot;
  }

 private:
  /// The most free slots that a thread keeps; further ones are deleted. More requests than that may be in progress at once and
  /// wait.
  static constexpr size_t kMost = 16;

  struct FreeList {
    Slot* slots[kMost];
    size_t count = 0;
  };

  /// Returns the list of the worker, or null if there is no memory for one. Objects of the thread that end after its list may still
  /// give slots back, and then there is none.
  static FreeList* freeList() {
    if (ofWorker(t_free) == nullptr) {
      sylar::detail::ThreadFibers::callAsWorker([] {
        static thread_local const std::unique_ptr<FreeList, Close> s_mine(new (std::nothrow) FreeList);
        if (!t_closed) t_free = s_mine.get();
      });
    }
    return ofWorker(t_free);
  }

  struct Close {
    void operator()(FreeList* mine) const {
      t_closed = true;
      t_free = nullptr;
      while (mine->count > 0) delete mine->slots[--mine->count];
      delete mine;
    }
  };

  [[gnu::tls_model("initial-exec")]] static constinit inline thread_local FreeList* t_free = nullptr;
  [[gnu::tls_model("initial-exec")]] static constinit inline thread_local bool t_closed = false;
};

}  // namespace sylar::http::detail
