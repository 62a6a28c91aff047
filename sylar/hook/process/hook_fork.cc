// fork and similar calls. The child shares all that is open, so this process can no longer remember the flags of any of it. In the
// child the hooks are libc (sys::inForkedChild) if workers ran here. vfork is made as fork, because its child would share this
// process's memory, and with it the table. Source: fork(2), vfork(2), forkpty(3), posix_spawn(3), popen(3), system(3).
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sylar/base/sys.h"
#include "sylar/hook/core/handler_scope.h"
#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/stay.h"
#include "sylar/hook/lock/parking_lot.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {
namespace {

/// Marks as shared all that is open before `make` runs, and all that other threads have opened since. The child does not keep open
/// what calls of the parent stay with.
template <class Make>
auto sharing(Make make) {
  if (sys::inForkedChild()) return make();
  FdTable::shareAll();
  const auto result = make();
  if (!sys::inForkedChild()) {
    FdTable::shareAll();
  } else if (!HandlerScope::running()) {  // a handler's child goes on with the call that the handler has interrupted
    Stay::closeCopiesInChild();
  }
  return result;
}

/// Sets the calling thread's signal mask and returns the one before.
uint64_t setMask(uint64_t mask) {
  uint64_t before = 0;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof mask);
  return before;
}

uint64_t presentMask() {
  uint64_t mask = 0;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &mask, sizeof mask);
  return mask;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

pid_t fork() noexcept {
  return sharing([] { return real::fork(); });
}
pid_t vfork() noexcept { return fork(); }
pid_t __fork() noexcept { return fork(); }
pid_t __vfork() noexcept { return fork(); }

/// Runs no handlers of pthread_atfork, so it tells the child itself that its thread is another one.
pid_t _Fork() noexcept {
  const pid_t child = sharing([] { return real::_Fork(); });
  if (child == 0) {
    sys::detail::t_thread_id = 0;
    ParkingLot::forgetAll();
  }
  return child;
}

int forkpty(int* master, char* name, const termios* mode, const winsize* size) noexcept {
  const pid_t child = sharing([=] { return real::forkpty(master, name, mode, size); });
  if (child > 0) FdTable::opened(*master, FdKind::kUnknown, false, false);
  return child;
}

int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                char* const arguments[], char* const environment[]) {
  return sharing([=] { return real::posix_spawn(child, path, actions, attributes, arguments, environment); });
}

int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                 char* const arguments[], char* const environment[]) {
  return sharing([=] { return real::posix_spawnp(child, file, actions, attributes, arguments, environment); });
}

FILE* popen(const char* command, const char* mode) {
  return sharing([=] { return real::popen(command, mode); });
}

// A whole call on a helper thread, because libc counts its own callers to know for how long SIGINT and SIGQUIT are ignored. The
// command inherits the signal mask of the thread that makes it. A helper blocks all signals, so it takes on the caller's mask.
int system(const char* command) {
  countCall(Hook::system);
  if (!maySuspendHere()) return sharing([=] { return real::system(command); });
  const auto make = [command, mask = presentMask()] {
    const uint64_t before = setMask(mask);
    const int status = real::system(command);
    setMask(before);
    return status;
  };
  return sharing([make] { return offload(make, BlockingPool::Length::kOthers); });
}

}  // extern "C"
