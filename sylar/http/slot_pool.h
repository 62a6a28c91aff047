// Internal. Memory that serves one request and is passed from request to request within a thread, across connections. Memory that
// served the last request is still in the processor's cache, and a connection that waits holds none.
#pragma once

#include <cstddef>

#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"

namespace sylar::http::detail {

/// The free slots of each thread.
///
/// Thread safety: take() from any thread, and give() from any other. The functions are not inlined, since a fiber may be on another
/// thread after a wait. May suspend: no.
template <class Slot>
class SlotPool {
 public:
  /// Returns a slot in the state in which it was given back, or a new one. May throw std::bad_alloc.
  [[gnu::noinline]] static Slot* take() {
    const tsan::Exempt of_this_thread;
    if (t_free.count == 0) return new Slot;
    Slot* const slot = t_free.slots[--t_free.count];
    tsan::acquire(slot);
    return slot;
  }

  [[gnu::noinline]] static void give(Slot* slot) {
    const tsan::Exempt of_this_thread;
    if (t_free.closed || t_free.count == kMost) {
      delete slot;
      return;
    }
    static thread_local AtThreadExit at_exit;
    (void)&at_exit;
    tsan::release(slot);  // orders the fiber that has used it before the one that will
    t_free.slots[t_free.count++] = slot;
  }

 private:
  /// The most free slots that a thread keeps; further ones are deleted. More requests than that may be in progress at once and
  /// wait.
  static constexpr size_t kMost = 16;

  /// Has no destructor, since objects of the thread that end later may still give slots back.
  struct FreeList {
    Slot* slots[kMost];
    size_t count;
    bool closed;
  };
  [[gnu::tls_model("initial-exec")]] static constinit inline thread_local FreeList t_free{};

  struct AtThreadExit {
    ~AtThreadExit() {
      t_free.closed = true;
      while (t_free.count > 0) delete t_free.slots[--t_free.count];
    }
  };
};

}  // namespace sylar::http::detail
