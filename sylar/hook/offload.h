// Internal. Whole calls of libc on a helper thread, for what cannot be attempted without waiting: names, files, locks of files.
//
//   return offload([=] { return real::flock(fd, operation); });
//
// Nothing under libc's own locks is suspended in this way: the hooks pass everything through on a helper thread.
#pragma once

#include <netdb.h>

#include <atomic>
#include <cerrno>

#include "sylar/base/sys.h"
#include "sylar/hook.h"
#include "sylar/hook/wait_loop.h"
#include "sylar/sync/blocking_pool.h"

namespace sylar {

/// Makes `call` in a fiber, which is not suspended in it.
template <class Call>
auto withoutHooks(Call call) -> decltype(call()) {
  set_hook_enable(false);
  const auto result = call();
  set_hook_enable(true);
  return result;
}

/// Has a helper thread make `call`, and returns its result. errno and h_errno are as if it had been made here. The call uses the
/// caller's memory, so neither a cancel nor a deadline ends the wait. It is made here where a fiber may not sleep, and, with hooks
/// off, where the pool is at its limits. May suspend: yes.
template <class Call>
auto offload(Call call) -> decltype(call()) {
  if (!hookSleeps()) return call();
  decltype(call()) result{};
  const int host_error_before = h_errno;
  int error = sys::errnoRef(), host_error = host_error_before;
  const auto make = [&] {
    sys::errnoRef() = error;
    h_errno = host_error;
    result = call();
    error = sys::errnoRef();
    host_error = h_errno;
  };
  if (BlockingPool::process().run(make) != 0) return withoutHooks(call);
  sys::errnoRef() = error;
  if (host_error != host_error_before) h_errno = host_error;  // else the call may have had its address, and stored it there
  return result;
}

extern constinit std::atomic<bool> g_hook_files;

/// Makes a call that waits for files as offload() does, if setHookFiles() says so, else here. May suspend: yes.
template <class Call>
auto offloadFileCall(Call call) -> decltype(call()) {
  return g_hook_files.load(std::memory_order_relaxed) ? offload(call) : call();
}

}  // namespace sylar
