#include "tests/fiber/overflow_programs.h"

#include <alloca.h>

namespace {

// The compiler must neither drop a frame nor share it.
void use(void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

[[gnu::noinline]] int recurse(int levels) {
  char frame[256];
  use(frame);
  const int below = levels == 0 ? 0 : recurse(levels - 1);
  use(frame);
  return below + frame[levels & 255];
}

template <unsigned Size>
[[gnu::noinline]] void useFrame() {
  char frame[Size];
  frame[0] = 1;
  use(frame);
}

[[gnu::noinline]] void useAllocas() {
  for (int i = 0; i < 10'000; ++i) {
    auto* const memory = static_cast<char*>(alloca(1000));
    memory[0] = 1;
    use(memory);
  }
}

[[maybe_unused]] const bool g_added =
    sylar::test::add({SYLAR_BUILD, [] { recurse(1 << 20); }, &useFrame<40 * 1024>, &useFrame<1024 * 1024>, &useAllocas});

}  // namespace
