// curl_easy_perform, the one call of a client library that is hooked, because no answer of the kernel's says to libcurl what a
// DeadlineScope has to say. A poll that has found nothing makes it wait again, unless the handle has a timeout of its own. A poll
// that fails ends the transfer, but libcurl then blames its caller (CURLE_BAD_FUNCTION_ARGUMENT). Source: curl_easy_perform(3),
// libcurl-errors(3), easy_transfer in lib/easy.c.
//
// The name is weak, so a program that has libcurl as an archive keeps that one, and is told what libcurl says.
#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/clock.h"
#include "sylar/fiber.h"
#include "sylar/sched/park.h"

extern "C" [[gnu::weak]] int curl_easy_perform(void* easy);

namespace sylar::detail {
namespace {

enum CurlCode : int { kFailedInit = 2, kOperationTimedOut = 28, kAbortedByCallback = 42, kBadFunctionArgument = 43 };

using Perform = int(void* easy);

/// Returns the names of all libraries that are loaded.
std::vector<std::string> loadedLibraries() {
  std::vector<std::string> names;
  const auto add = [](dl_phdr_info* library, size_t, void* to) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(library->dlpi_name);
    return 0;
  };
  ::dl_iterate_phdr(add, &names);
  return names;
}

/// Returns libcurl's own, or null. A plugin may have brought a libcurl along that only it can see (RTLD_LOCAL). The address to
/// which the call returns does not tell which plugin, because after a tail call it is in the plugin's host.
Perform* findPerform() {
  constexpr const char* kName = "curl_easy_perform";
  if (void* const next = ::dlsym(RTLD_NEXT, kName)) return reinterpret_cast<Perform*>(next);
  for (const std::string& library : loadedLibraries()) {  // not inside the iteration, whose lock dlopen takes behind another
    void* const handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    auto* const found = reinterpret_cast<Perform*>(::dlsym(handle, kName));
    ::dlclose(handle);
    if (found != nullptr && found != &::curl_easy_perform) return found;
  }
  return nullptr;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the name below is libcurl's

extern "C" int curl_easy_perform(void* easy) {
  Perform* const perform = findPerform();
  if (perform == nullptr) return kFailedInit;
  const int result = perform(easy);
  if (result != kBadFunctionArgument || easy == nullptr || !mayPark()) return result;
  if (this_fiber::cancelled()) return kAbortedByCallback;
  return withinScope(Deadline::never()).ns() <= waitClock().nowNs() ? kOperationTimedOut : result;
}
