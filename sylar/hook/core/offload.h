// Internal. Whole calls of libc on a helper thread, for what cannot be attempted without waiting: names, files, locks of files.
//
//   return offload([=] { return real::flock(fd, operation); });
//
// Nothing under libc's own locks is suspended in this way: the hooks pass everything through on a helper thread.
#pragma once

#include <netdb.h>

#include <atomic>
#include <cerrno>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/sync/blocking_pool.h"

namespace sylar::detail {

/// Makes `call` in a fiber, which is not suspended in it.
template <class Call>
auto withoutHooks(Call call) -> decltype(call()) {
  SYLAR_DCHECK(runningFiber() != nullptr && is_hook_enable());
  set_hook_enable(false);
  const auto result = call();
  set_hook_enable(true);
  return result;
}

/// Has a helper thread make `call`, and returns its result. errno and h_errno are as if it had been made here. The call uses the
/// caller's memory, so neither a cancel nor a deadline ends the wait. It is made here where a fiber may not sleep, and, with hooks
/// off, where the pool is at its limits. `length` says whether the call lasts as long as others like. May suspend: yes.
template <class Call>
auto offload(Call call, BlockingPool::Length length = BlockingPool::Length::kOwn) -> decltype(call()) {
  if (!maySuspendHere()) return call();
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
  const HookPark waiting;
  if (BlockingPool::process().run(make, length) != 0) return withoutHooks(call);
  waiting.count();
  sys::errnoRef() = error;
  if (host_error != host_error_before) h_errno = host_error;  // else the call may have had its address, and stored it there
  return result;
}

/// Returns true if the caller is a fiber that calls on files suspend (setHookFiles). Libraries make such calls under locks of
/// theirs, which must then suspend as well (setHookLocks).
bool filesSuspend();

/// A descriptor's number, as it is when a call begins that a helper thread is to make.
class NumberAtCall {
 public:
  explicit NumberAtCall(int fd) : m_entry(FdTable::at(fd)) {
    if (m_entry != nullptr) m_generation = Entry::generationOf(lifeAfterClose(*m_entry, fd));
  }
  /// Returns false if the number was closed since. It may be somebody else's by now.
  bool isSame() const {
    if (m_entry == nullptr) return true;
    const uint64_t life = m_entry->life();
    return Entry::generationOf(life) == m_generation && !Entry::isClosing(life);
  }

 private:
  const Entry* const m_entry;
  uint32_t m_generation = 0;
};

/// Returns a function that makes `call` if none of the numbers `fds` was closed since this one returned, and else fails with EBADF.
template <class Call, class... Fds>
auto onNumbers(Call call, Fds... fds) {
  return [call, ... numbers = NumberAtCall(fds)]() -> decltype(call()) {
    if ((numbers.isSame() && ...)) return call();
    sys::errnoRef() = EBADF;
    return -1;
  };
}

/// Makes a call that waits for files as offload() does, if setHookFiles() says so, else here. `fds` are the numbers that it uses;
/// it fails with EBADF if one of them is closed before a helper thread comes to it. May suspend: yes.
template <class Call, class... Fds>
auto offloadFileCall(Call call, Fds... fds) -> decltype(call()) {
  return filesSuspend() ? offload(onNumbers(call, fds...)) : call();
}

}  // namespace sylar::detail
