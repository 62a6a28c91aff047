// For tests: a coroutine that a program has made by itself (makecontext), on a stack of its own inside of a fiber.
#pragma once

#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace sylar::test {

class Coroutine {
 public:
  static constexpr size_t kStackSize = 256 * 1024;

  explicit Coroutine(std::function<void(Coroutine&)> body) : m_body(std::move(body)) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    m_stack = ::mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    ::getcontext(&m_inside);
    m_inside.uc_stack.ss_sp = m_stack;
    m_inside.uc_stack.ss_size = kStackSize;
    m_inside.uc_link = &m_outside;
    const auto self = reinterpret_cast<uintptr_t>(this);
    ::makecontext(&m_inside, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(self),
                  static_cast<unsigned>(self >> 32));
  }
  ~Coroutine() { ::munmap(m_stack, kStackSize); }
  Coroutine(const Coroutine&) = delete;
  Coroutine& operator=(const Coroutine&) = delete;

  /// Goes on in the coroutine. Returns when it yields or ends.
  void resume() { ::swapcontext(&m_outside, &m_inside); }
  /// Goes back to who has resumed it. To be called in the coroutine.
  void yield() { ::swapcontext(&m_inside, &m_outside); }
  bool ended() const { return m_ended; }
  bool contains(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(m_stack) < kStackSize;
  }

 private:
  static void enter(unsigned low, unsigned high) {
    auto& self = *reinterpret_cast<Coroutine*>(uintptr_t{high} << 32 | low);
    self.m_body(self);
    self.m_ended = true;
  }

  std::function<void(Coroutine&)> m_body;
  void* m_stack;
  ucontext_t m_outside, m_inside;
  bool m_ended = false;
};

/// Runs `body` in a coroutine, to its end.
inline void inCoroutine(std::function<void()> body) {
  Coroutine coroutine([body = std::move(body)](Coroutine&) { body(); });
  while (!coroutine.ended()) coroutine.resume();
}

}  // namespace sylar::test
