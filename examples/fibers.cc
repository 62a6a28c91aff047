// Fibers by hand, without a scheduler: a generator of values, a chain of two fibers, and a fiber that ends with an exception.
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "sylar/fiber.h"

using sylar::Fiber;

int main() {
  // This fiber is a generator; resume() runs it up to its next yield.
  int value = 0;
  const auto squares = std::make_shared<Fiber>([&value] {
    for (int i = 1; i <= 5; ++i) {
      value = i * i;
      Fiber::YieldToHold();
    }
  });
  squares->setName("squares");

  // This fiber resumes the first one, which yields to it, and then yields to main.
  const auto odd_squares = std::make_shared<Fiber>([&] {
    for (;;) {
      squares->resume();
      if (squares->getState() == Fiber::TERM) return;
      if (value % 2 == 1) Fiber::YieldToHold();
    }
  });
  odd_squares->setName("odd squares");

  for (odd_squares->resume(); odd_squares->getState() != Fiber::TERM; odd_squares->resume()) {
    std::printf("%s: %d\n", odd_squares->getName().c_str(), value);
  }

  // An exception ends its fiber, not the code that resumed it; join() rethrows it.
  const auto failing = std::make_shared<Fiber>([] { throw std::runtime_error("no more numbers"); });
  failing->resume();
  try {
    failing->join();
  } catch (const std::runtime_error& error) {
    std::printf("fiber %s: %s\n", failing->getState() == Fiber::EXCEPT ? "failed" : "ended", error.what());
  }
}
