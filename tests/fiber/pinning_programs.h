// Ordinary code that a compiler may translate so that it takes a fiber's thread for granted. None of it knows
// fibers. Built twice, with -O2 and, as a shared library, with -O2 -fPIC.
#pragma once

#include <cstdint>

namespace sylar::test {

/// A call that suspends the calling fiber and leaves errno alone.
using Wait = void (*)();

// Each returns how many of `rounds` went wrong.
int errnoReadAfterTheWait(Wait wait, int rounds);
int errnoAddressAfterTheWait(Wait wait, int rounds);
/// `fd` is an idle socket with a receive timeout.
int errnoInARetryLoop(int fd, int rounds);
int addressOfAThreadLocal(Wait wait, int rounds);
int valueOfAThreadLocalWithConstructor(Wait wait, int rounds);
int pthreadSelf(Wait wait, int rounds);
int threadId(Wait wait, int rounds);

/// Writes a byte to `fd` and reads one from it, `rounds` times; how often the kernel thread id was another one, or a call failed.
int kernelThreadIdOverHookedCalls(int fd, int rounds);

}  // namespace sylar::test
