// Internal. Objects that live for one request and are passed from request to request within a thread, across connections. An
// object that served the last request is still in the processor's cache, and a connection that waits holds none.
#pragma once

#include <cstddef>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/base/tsan.h"

namespace sylar::http::detail {

/// An object and the room for the control block of its shared_ptr are one slot. When the last reference ends, the object is
/// reset. When the last weak reference has ended as well, the slot becomes a free slot of the thread in which that happened. So
/// no request sees the data of another, and a slot that is used again needs no allocation.
///
/// Thread safety: take() from any thread, and the last reference may end in any. Each thread has its own free slots. The
/// functions that touch them are not inlined, since a fiber may be on another thread after a wait. May suspend: no.
template <class T>
class ObjectPool {
 public:
  /// Returns an object that is as new; drop it like any other. May throw std::bad_alloc.
  static std::shared_ptr<T> take() {
    Slot* const slot = takeSlot();
    return {&slot->object, Reset(), Room<T>(slot)};
  }

 private:
  /// The most free slots that a thread keeps; further ones are deleted. More requests than that may be in progress at once and
  /// wait.
  static constexpr size_t kMost = 16;

  struct Slot {
    T object;
    alignas(std::max_align_t) std::byte room[64];
  };

  struct Reset {
    void operator()(T* object) const noexcept { object->reset(); }
  };

  /// The allocator of the control block.
  template <class Block>
  struct Room {
    using value_type = Block;
    explicit Room(Slot* of) : slot(of) {}
    template <class Other>
    Room(const Room<Other>& other) : slot(other.slot) {}  // NOLINT(google-explicit-constructor): an allocator's
    template <class Other>
    bool operator==(const Room<Other>& other) const {
      return slot == other.slot;
    }

    Block* allocate(size_t) {
      static_assert(sizeof(Block) <= sizeof slot->room && alignof(Block) <= alignof(std::max_align_t));
      return reinterpret_cast<Block*>(slot->room);
    }
    void deallocate(Block*, size_t) { freeSlot(slot); }

    Slot* slot;
  };

  /// Has no destructor, since objects of the thread that end later may still drop references.
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

  [[gnu::noinline]] static Slot* takeSlot() {
    const tsan::Exempt of_this_thread;
    if (t_free.count == 0) return new Slot();
    Slot* const slot = t_free.slots[--t_free.count];
    tsan::acquire(slot);
    return slot;
  }

  [[gnu::noinline]] static void freeSlot(Slot* slot) {
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
};

}  // namespace sylar::http::detail
