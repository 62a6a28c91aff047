#include "sylar/hook/real.h"

#include <dlfcn.h>

#include <cstdio>

#include "sylar/base/check.h"

#define SYLAR_WEAK_(name) extern "C" decltype(::name) __interceptor_##name __attribute__((weak));
SYLAR_HOOKED_NAMES(SYLAR_WEAK_)

namespace sylar::real {

void* resolve(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) ::sylar::detail::checkFailed(__FILE__, __LINE__, "libc has this function", name);
  return found;
}

#define SYLAR_DEFINE_(name) constinit Real<decltype(::name)> name(#name, &__interceptor_##name);
SYLAR_HOOKED_NAMES(SYLAR_DEFINE_)

namespace {

/// Before main, so that later no signal handler and no forked child finds the loader's lock held.
[[gnu::constructor]] void lookAllUp() {
#define SYLAR_LOOK_UP_(name) name.lookUp(::dlsym(RTLD_NEXT, #name));
  SYLAR_HOOKED_NAMES(SYLAR_LOOK_UP_)
}

}  // namespace

}  // namespace sylar::real
