// curl_easy_perform, the one call of a client library that is hooked, because no answer of the kernel's says to libcurl what a
// DeadlineScope has to say. A poll that has found nothing makes it wait again, unless the handle has a timeout of its own. A poll that
// fails ends the transfer, but libcurl then blames its caller (CURLE_BAD_FUNCTION_ARGUMENT). Source: curl_easy_perform(3),
// libcurl-errors(3), easy_transfer in lib/easy.c.
//
// The name is weak, so a program that has libcurl as an archive keeps that one, and is told what libcurl says.
#include <dlfcn.h>

#include "sylar/base/internal.h"
#include "sylar/check.h"
#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/sched/park.h"

namespace sylar::detail {
namespace {

enum CurlCode : int { kOperationTimedOut = 28, kAbortedByCallback = 42, kBadFunctionArgument = 43 };

using Perform = int(void* easy);

/// Returns libcurl's own for the code at `caller`. A plugin may have brought a libcurl along that only it can see.
Perform* performOf(const void* caller) {
  if (void* const next = ::dlsym(RTLD_NEXT, "curl_easy_perform")) return reinterpret_cast<Perform*>(next);
  Dl_info plugin{};
  void* const handle = ::dladdr(caller, &plugin) != 0 ? ::dlopen(plugin.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  SYLAR_CHECK(handle != nullptr);
  void* const own = ::dlsym(handle, "curl_easy_perform");
  ::dlclose(handle);
  SYLAR_CHECK(own != nullptr);
  return reinterpret_cast<Perform*>(own);
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the name below is libcurl's

extern "C" [[gnu::weak]] int curl_easy_perform(void* easy) {
  const int result = performOf(__builtin_return_address(0))(easy);
  if (result != kBadFunctionArgument || easy == nullptr || !mayPark()) return result;
  if (this_fiber::cancelled()) return kAbortedByCallback;
  return withinScope(Deadline::never()).ns() <= waitClock().nowNs() ? kOperationTimedOut : result;
}
