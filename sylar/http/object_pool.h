// Internal. Objects that live for one request, in slots of the thread (slot_pool.h).
#pragma once

#include <cstddef>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/http/slot_pool.h"

namespace sylar::http::detail {

/// An object and the room for the control block of its shared_ptr are one slot. When the last reference ends, the object is
/// reset. When the last weak reference has ended as well, the slot becomes a free slot of the thread in which that happened. So
/// no request sees the data of another, and a slot that is used again needs no allocation.
///
/// Thread safety: take() from any thread, and the last reference may end in any. May suspend: no.
template <class T>
class ObjectPool {
 public:
  /// Returns an object that is as new; drop it like any other. May throw std::bad_alloc.
  static std::shared_ptr<T> take() {
    Slot* const slot = SlotPool<Slot>::take();
    return {&slot->object, Reset(), Room<T>(slot)};
  }

 private:
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
    void deallocate(Block*, size_t) { SlotPool<Slot>::give(slot); }

    Slot* slot;
  };
};

}  // namespace sylar::http::detail
