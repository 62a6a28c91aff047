// One object of a type for the process, made at its first use. `X` and `N` tell apart several of the same type. Source: sylar.
//
// The objects are never destroyed: they may be used by whatever runs after main, other destructors and threads included.
//
// Thread safety: GetInstance from any thread; exactly one object is made. The object's own safety is its own.
#pragma once

#include <memory>

namespace sylar {

/// Hands out a plain pointer, never null. What T's constructor throws comes out, and the next call tries again.
template <class T, class X = void, int N = 0>
class Singleton {
 public:
  static T* GetInstance() {
    static T* const instance = new T;
    return instance;
  }
};

/// The same, as a shared pointer. Source: sylar.
template <class T, class X = void, int N = 0>
class SingletonPtr {
 public:
  static std::shared_ptr<T> GetInstance() {
    static const auto* const instance = new std::shared_ptr<T>(std::make_shared<T>());
    return *instance;
  }
};

}  // namespace sylar
