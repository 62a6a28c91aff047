// Internal. Objects that live for one request, handed on from request to request within a thread, whatever their connections:
// what served the last one is still in the processor's cache, and a connection that waits has none.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace sylar::http {

/// Thread safety: from any thread; each has its own. Suspends: no. Not inlined, for the thread may be another after a wait.
template <class T>
class Recycled {
 public:
  /// One that is as new; may throw std::bad_alloc.
  [[gnu::noinline]] static std::shared_ptr<T> take() {
    Spares& spares = spare();
    return spares.count == 0 ? std::make_shared<T>() : std::move(spares.objects[--spares.count]);
  }

  /// `object`, which is not null, is for the next one, unless somebody has kept it.
  [[gnu::noinline]] static void give(std::shared_ptr<T>&& object) {
    Spares& spares = spare();
    if (object.use_count() == 1 && spares.count < kMost) {
      std::atomic_thread_fence(std::memory_order_acquire);  // another thread may have let it go just now
      object->reset();
      spares.objects[spares.count++] = std::move(object);
    } else {
      object.reset();
    }
  }

 private:
  /// Requests that are at work at once, and wait in between, may be more; what is too many is deleted.
  static constexpr size_t kMost = 16;

  struct Spares {
    size_t count = 0;
    std::shared_ptr<T> objects[kMost];
  };
  static Spares& spare() {
    static thread_local Spares spares;
    return spares;
  }
};

}  // namespace sylar::http
