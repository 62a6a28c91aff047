// Internal. Objects that live for one request and are passed from request to request within a thread, across connections. An
// object that served the last request is still in the processor's cache, and a connection that waits holds none.
#pragma once

#include <cstddef>
#include <memory>

#include "sylar/base/tsan.h"

namespace sylar::http {

/// An object and the room for the control block of its shared_ptr are one piece. When the last reference ends, the object is
/// reset. When the last weak reference has ended as well, the piece becomes a spare of the thread in which that happened. So no
/// request sees the data of another, and a piece that is used again needs no allocation.
///
/// Thread safety: take() from any thread, and the last reference may end in any. Each thread has its own spares. The functions
/// that touch them are not inlined, since a fiber may be on another thread after a wait. May suspend: no.
template <class T>
class Recycled {
 public:
  /// Returns an object that is as new; drop it like any other. May throw std::bad_alloc.
  static std::shared_ptr<T> take() {
    Piece* const piece = takePiece();
    return {&piece->object, Reset(), Room<T>(piece)};
  }

 private:
  /// The most spares that a thread keeps; further ones are deleted. More requests than that may be in progress at once and wait.
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

  /// Has no destructor, since objects of the thread that end later may still drop references.
  struct Spares {
    Piece* pieces[kMost];
    size_t count;
    bool closed;
  };
  [[gnu::tls_model("initial-exec")]] static constinit inline thread_local Spares t_spares{};

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
    tsan::release(piece);  // orders the fiber that has used it before the one that will
    t_spares.pieces[t_spares.count++] = piece;
  }
};

}  // namespace sylar::http
