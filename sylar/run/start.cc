// How the runner's object gets between the C library and the program's main. Source: LSB, __libc_start_main.
#include <dlfcn.h>

#include "sylar/run/main_fiber.h"

namespace {

using Main = int (*)(int argc, char** argv, char** environment);

Main g_program;
void* g_stack_top;

/// pthread_exit in main unwinds through it.
int runProgram(int argc, char** argv, char** environment) {
  sylar::becomeFiber(g_stack_top);
  const struct Leaving {
    ~Leaving() { sylar::leaveMain(); }
  } leaving;
  return g_program(argc, argv, environment);
}

}  // namespace

extern "C" int __libc_start_main(Main program, int argc, char** argv, void (*init)(), void (*fini)(), void (*loader_fini)(),
                                 void* stack_end) {
  g_program = program;
  g_stack_top = stack_end;
  auto* const next = reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return next(runProgram, argc, argv, init, fini, loader_fini, stack_end);
}
