#include "sylar/hook/core/real.h"

#include <dlfcn.h>

#include <cstdio>
#include <string_view>

#include "sylar/base/sys.h"
#include "sylar/check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // as in real.h
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

// With -static no name has a next definition, so such a program must not link. Only the dynamic loader defines this symbol.
extern "C" void* __tls_get_addr(void*);
[[gnu::used, gnu::section(".data.rel.ro.hooks_need_a_shared_libc")]] void* (*const g_loader)(void*) = &__tls_get_addr;

/// Warns if the loader gives libc's functions to those who ask for these names. The program or its libraries have lost the hooks
/// then, without a word from the linker. Libraries that others put before the hooks are no loss, for they call on.
void sayIfLost() {
  constexpr std::string_view kHidden =
      "sylar: shared libraries do not see the hooks, so their calls block the thread. Link the program without --exclude-libs "
      "and "
      "without a version script that has local: *, and do not compile the hooks with hidden visibility\n";
  constexpr std::string_view kBehind =
      "sylar: libc stands before the hooks, so all calls block the thread. Name sylar's libraries before -lc, or link the target "
      "sylar::hook\n";
  for (const char* const name : {"read", "write", "poll", "connect", "close", "sleep"}) {
    void* const next = ::dlsym(RTLD_NEXT, name);
    if (next != nullptr && ::dlsym(RTLD_DEFAULT, name) != next) continue;
    const std::string_view what = next != nullptr ? kHidden : kBehind;
    sys::writeAll(2, what.data(), what.size());
    return;
  }
}

/// Looks all names up before main, so that later no signal handler and no forked child finds the loader's lock held.
[[gnu::constructor]] void lookAllUp() {
#define SYLAR_LOOK_UP_(name) name.lookUp(::dlsym(RTLD_NEXT, #name));
  SYLAR_HOOKED_NAMES(SYLAR_LOOK_UP_)
  sayIfLost();
}

}  // namespace

}  // namespace sylar::real
