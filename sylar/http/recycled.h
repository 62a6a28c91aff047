// Internal. Objects that live for one request, handed on from request to request within a thread, whatever their connections:
// what served the last one is still in the processor's cache, and a connection that waits has none.
#pragma once

#include <cstddef>
#include <memory>

#include "sylar/base/tsan.h"

namespace sylar::http {

/// An object and room for the control block of its shared_ptr are one piece. When the last reference ends, the object is reset;
/// when the last weak one has ended, too, the piece is a spare of the thread in which that was. So nobody sees in it what is
/// another's, and a piece that is used again costs no memory.
///
/// Thread safety: from any thread, and the last reference may end in any; each has its own spares. Suspends: no. What touches
/// them is not inlined, for the thread may be another after a wait.
template <class T>
class Recycled {
 public:
  /// One that is as new: let it go as any other. May throw std::bad_alloc.
  static std::shared_ptr<T> take() {
    Piece* const piece = takePiece();
    return {&piece->object, Reset(), Room<T>(piece)};
  }

 private:
  /// Requests that are at work at once, and wait in between, may be more; what is too many is deleted.
  static constexpr size_t kMost = 16;

  struct Piece {
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
    explicit Room(Piece* of) : piece(of) {}
    template <class Other>
    Room(const Room<Other>& other) : piece(other.piece) {}  // NOLINT(google-explicit-constructor): an allocator's
    template <class Other>
    bool operator==(const Room<Other>& other) const {
      return piece == other.piece;
    }

    Block* allocate(size_t) {
      static_assert(sizeof(Block) <= sizeof piece->room && alignof(Block) <= alignof(std::max_align_t));
      return reinterpret_cast<Block*>(piece->room);
    }
    void deallocate(Block*, size_t) { givePiece(piece); }

    Piece* piece;
  };

  /// Without a destructor: what ends later in a thread may still let objects go.
  struct Spares {
    Piece* pieces[kMost];
    size_t count;
    bool closed;
  };
  static constinit inline thread_local Spares t_spares{};

  struct AtThreadExit {
    ~AtThreadExit() {
      t_spares.closed = true;
      while (t_spares.count > 0) delete t_spares.pieces[--t_spares.count];
    }
  };

  [[gnu::noinline]] static Piece* takePiece() {
    const tsan::Exempt of_this_thread;
    if (t_spares.count == 0) return new Piece();
    Piece* const piece = t_spares.pieces[--t_spares.count];
    tsan::acquire(piece);
    return piece;
  }

  [[gnu::noinline]] static void givePiece(Piece* piece) {
    const tsan::Exempt of_this_thread;
    if (t_spares.closed || t_spares.count == kMost) {
      delete piece;
      return;
    }
    static thread_local AtThreadExit at_exit;
    (void)&at_exit;
    tsan::release(piece);  // the fiber that has used it, for the one that will
    t_spares.pieces[t_spares.count++] = piece;
  }
};

}  // namespace sylar::http
