// A Singleton holds one object of a type for the process, made at its first use. `X` and `N` tell apart several of the same
// type. Source: sylar.
//
// The objects are never destroyed, so code that runs after main may use them, including other destructors and threads. A fiber
// that comes while another constructs the object is suspended, so a constructor may wait.
//
// Thread safety: GetInstance may be called from any thread, and exactly one object is made. The object's own safety is its own.
#pragma once

#include <memory>

#include "sylar/sync/once.h"

namespace sylar {

/// Hands out a plain pointer, never null, to the one T of the process. If T's constructor throws, the exception reaches the
/// caller and the next call tries again.
template <class T, class X = void, int N = 0>
class Singleton {
 public:
  static T* GetInstance() {
    static Once& once = *new Once;
    static T* instance = nullptr;
    once.call([] { instance = new T; });
    return instance;
  }
};

/// Hands out a shared pointer to the one T of the process. If T's constructor throws, the exception reaches the caller and the
/// next call tries again. Source: sylar.
template <class T, class X = void, int N = 0>
class SingletonPtr {
 public:
  static std::shared_ptr<T> GetInstance() {
    static Once& once = *new Once;
    static const std::shared_ptr<T>* instance = nullptr;
    once.call([] { instance = new std::shared_ptr<T>(std::make_shared<T>()); });
    return *instance;
  }
};

}  // namespace sylar
