// sylar's atomic operations on plain integers and pointers. In new code choose std::atomic, which makes every access atomic.
//
// Each function is one sequentially consistent operation. `value` is converted to the type of `target`.
//
// Thread safety: all functions from any thread, as long as no thread accesses `target` by other means at the same time. May
// suspend: no.
#pragma once

namespace sylar {

class Atomic {
 public:
  /// Changes `target` and returns its new value.
  template <class T, class S = T>
  static T addFetch(volatile T& target, S value = 1) {
    return __atomic_add_fetch(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S = T>
  static T subFetch(volatile T& target, S value = 1) {
    return __atomic_sub_fetch(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S>
  static T orFetch(volatile T& target, S value) {
    return __atomic_or_fetch(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S>
  static T andFetch(volatile T& target, S value) {
    return __atomic_and_fetch(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S>
  static T xorFetch(volatile T& target, S value) {
    return __atomic_xor_fetch(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  /// Sets `target` to ~(target & value) and returns its new value.
  template <class T, class S>
  static T nandFetch(volatile T& target, S value) {
    return __atomic_nand_fetch(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }

  /// Changes `target` and returns its previous value.
  template <class T, class S = T>
  static T fetchAdd(volatile T& target, S value = 1) {
    return __atomic_fetch_add(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S = T>
  static T fetchSub(volatile T& target, S value = 1) {
    return __atomic_fetch_sub(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S>
  static T fetchOr(volatile T& target, S value) {
    return __atomic_fetch_or(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S>
  static T fetchAnd(volatile T& target, S value) {
    return __atomic_fetch_and(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S>
  static T fetchXor(volatile T& target, S value) {
    return __atomic_fetch_xor(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }
  template <class T, class S>
  static T fetchNand(volatile T& target, S value) {
    return __atomic_fetch_nand(&target, static_cast<T>(value), __ATOMIC_SEQ_CST);
  }

  /// Sets `target` to `desired` if it is `expected`. Returns its previous value.
  template <class T, class S>
  static T compareAndSwap(volatile T& target, S expected, S desired) {
    T before = static_cast<T>(expected);
    __atomic_compare_exchange_n(&target, &before, static_cast<T>(desired), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return before;
  }
  /// Sets `target` to `desired` if it is `expected`, and returns true in that case.
  template <class T, class S>
  static bool compareAndSwapBool(volatile T& target, S expected, S desired) {
    T before = static_cast<T>(expected);
    return __atomic_compare_exchange_n(&target, &before, static_cast<T>(desired), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
};

}  // namespace sylar
