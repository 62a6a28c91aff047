// For the tests of lookups: the module of NSS (nss_module.cc), which tells the test that it is asked.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/support/beside_program.h"

namespace sylar::test {

/// Has the module call `asked` whenever libc asks it for something.
inline void whenAsked(void (*asked)()) {
  // libc's own dlopen finds it by its name.
  static void* const module = ::dlopen(besideProgram(SYLAR_NSS_MODULE).c_str(), RTLD_NOW);
  ASSERT_NE(module, nullptr) << ::dlerror();
  *static_cast<void (**)()>(::dlsym(module, "nss_sylar_asked")) = asked;
}

}  // namespace sylar::test
