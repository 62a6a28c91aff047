// What a timer made by startTimer() runs: a callable, in 16 bytes.
//
// A callable that is trivially copyable and no larger than a word (a function, a lambda that captures one pointer or reference)
// lies inside, and nothing is allocated. Any other is moved to the heap. Thread safety: none.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace sylar {

class TimerTask {
 public:
  TimerTask() = default;

  /// May throw what the callable's constructors throw, and std::bad_alloc if it does not fit. An empty std::function or a null
  /// function pointer makes an empty task.
  template <class Callable>
  requires(!std::same_as<Callable, TimerTask> && std::invocable<Callable&>) explicit(false) TimerTask(Callable callable) {
    if constexpr (std::is_pointer_v<Callable> || requires { callable.operator bool(); }) {
      if (!static_cast<bool>(callable)) return;
    }
    if constexpr (sizeof(Callable) <= sizeof m_word && std::is_trivially_copyable_v<Callable>) {
      ::new (static_cast<void*>(&m_word)) Callable(callable);
      m_act = [](void** word, Act act) {
        if (act == Act::kRun) (*std::launder(reinterpret_cast<Callable*>(word)))();
      };
    } else {
      m_word = new Callable(std::move(callable));
      m_act = [](void** word, Act act) {
        auto* const on_heap = static_cast<Callable*>(*word);
        act == Act::kRun ? void((*on_heap)()) : delete on_heap;
      };
    }
  }
  /// Makes an empty task.
  explicit(false) TimerTask(std::nullptr_t) {}

  TimerTask(TimerTask&& other) noexcept : m_act(std::exchange(other.m_act, nullptr)), m_word(other.m_word) {}
  TimerTask& operator=(TimerTask&& other) noexcept {
    TimerTask old(std::move(*this));
    m_act = std::exchange(other.m_act, nullptr);
    m_word = other.m_word;
    return *this;
  }
  ~TimerTask() {
    if (m_act != nullptr) m_act(&m_word, Act::kDestroy);
  }

  /// There is something to run.
  explicit operator bool() const { return m_act != nullptr; }

  /// Runs the callable; nothing if the task is empty. May suspend: yes, if the callable does.
  void operator()() {
    if (m_act != nullptr) m_act(&m_word, Act::kRun);
  }

 private:
  enum class Act : bool { kRun, kDestroy };

  void (*m_act)(void** word, Act act) = nullptr;
  void* m_word = nullptr;  ///< the callable, or where it is
};
static_assert(sizeof(TimerTask) == 16);

}  // namespace sylar
