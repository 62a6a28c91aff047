// A TimerTask is the callable that a timer made by startTimer() runs, in 16 bytes.
//
// A callable that is trivially copyable and no larger than a word (a function, or a lambda that captures one pointer or
// reference) lies inside, and nothing is allocated. Any other is moved to the heap.
//
// Thread safety: none.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace sylar {

/// A movable callable in 16 bytes; one that fits into a word is stored without an allocation.
class TimerTask {
 public:
  TimerTask() = default;

  /// Takes `callable`. An empty std::function or a null function pointer makes an empty task. Throws what the callable's
  /// constructors throw, and std::bad_alloc if it does not fit.
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

  /// Returns true if there is something to run.
  explicit operator bool() const { return m_act != nullptr; }

  /// Returns the word that an empty task may keep for its owner. A callable assigned to the task replaces it.
  void* note() const { return m_word; }
  void setNote(void* word) { m_word = word; }

  /// Runs the callable; does nothing if the task is empty. May suspend: yes, if the callable does.
  void operator()() {
    if (m_act != nullptr) m_act(&m_word, Act::kRun);
  }

 private:
  enum class Act : bool { kRun, kDestroy };

  void (*m_act)(void** word, Act act) = nullptr;
  void* m_word = nullptr;  ///< the callable, or a pointer to it; in an empty task the owner's note
};
static_assert(sizeof(TimerTask) == 16);

}  // namespace sylar
