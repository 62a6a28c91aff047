#include "sylar/hook/real.h"

#include <dlfcn.h>

#include <cstdio>
#include <string_view>

#include "sylar/base/sys.h"
#include "sylar/check.h"

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

/// Warns if the program hides our names from the shared libraries that it brings. They lose the hooks then, without a word from
/// the linker.
void sayIfHidden() {
  constexpr std::string_view kHidden =
      "sylar: shared libraries do not see the hooks, so their calls block the thread. Link the program without --exclude-libs "
      "and "
      "without a version script that has local: *\n";
  void* const next = ::dlsym(RTLD_NEXT, "read");
  if (next != nullptr && ::dlsym(RTLD_DEFAULT, "read") == next) sys::writeAll(2, kHidden.data(), kHidden.size());
}

/// Looks all names up before main, so that later no signal handler and no forked child finds the loader's lock held.
[[gnu::constructor]] void lookAllUp() {
#define SYLAR_LOOK_UP_(name) name.lookUp(::dlsym(RTLD_NEXT, #name));
  SYLAR_HOOKED_NAMES(SYLAR_LOOK_UP_)
  sayIfHidden();
}

}  // namespace

}  // namespace sylar::real
