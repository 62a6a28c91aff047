// setuid, setgroups and the others that libc makes in every thread of the process (set_ids.h). Where threads are fibers, none may be
// made meanwhile, because a kernel thread that exits behind libc's back may take libc's signal with it, and libc waits for the answer.
// Source: setuid(2), setresuid(2), setgroups(2), initgroups(3).
#include <grp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/hook/fiber_thread.h"
#include "sylar/hook/real.h"
#include "sylar/hook/set_ids.h"
#include "sylar/hook/thread_record.h"

namespace sylar::detail {
namespace {

#define SYLAR_LIBC_(name) constinit real::Real<decltype(::name)> g_##name(#name, nullptr);
SYLAR_LIBC_(setuid)
SYLAR_LIBC_(setgid)
SYLAR_LIBC_(seteuid)
SYLAR_LIBC_(setegid)
SYLAR_LIBC_(setreuid)
SYLAR_LIBC_(setregid)
SYLAR_LIBC_(setresuid)
SYLAR_LIBC_(setresgid)
SYLAR_LIBC_(setgroups)
#undef SYLAR_LIBC_

/// Makes `call` while no thread that is a fiber is made. In a child of a fork there are none, and the lock may be another thread's.
template <class Call, class... Arguments>
int withoutBirths(Call& call, Arguments... arguments) {
#ifdef SYLAR_THREAD_POINTER
  std::optional<Lock<OsMutex>> lock;
  if (!sys::inForkedChild()) lock.emplace(g_births);
#endif
  return call(arguments...);
}

#ifdef SYLAR_THREAD_POINTER

constexpr int kSetIds = 33;  // SIGSETXID of glibc

/// What rt_sigaction(2) takes on x86-64.
struct Action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

constinit std::atomic<decltype(Action::handler)> g_libcs_handler{nullptr};

void handleAsWorker(int signal, siginfo_t* info, void* context) {
  const uintptr_t mine = threadPointer();
  const uintptr_t worker = FiberThread::mine().worker_pointer.load(std::memory_order_relaxed);
  const bool lent = worker != 0 && !sys::inForkedChild();  // a child's one thread is the one that forked
  if (lent) setThreadPointer(worker);
  g_libcs_handler.load(std::memory_order_relaxed)(signal, info, context);
  if (lent) setThreadPointer(mine);
}

#endif

}  // namespace

#ifdef SYLAR_THREAD_POINTER

void hearSetIdsAsWorker() {
  Action action{};
  if (sys::call(SYS_rt_sigaction, kSetIds, nullptr, &action, sizeof action.mask) != 0) return;
  if (action.handler == nullptr || action.handler == &handleAsWorker) return;
  g_libcs_handler.store(action.handler, std::memory_order_relaxed);
  action.handler = &handleAsWorker;
  action.mask = ~uint64_t{0};  // no other handler may see the worker's thread pointer
  sys::call(SYS_rt_sigaction, kSetIds, &action, nullptr, sizeof action.mask);
}

#endif

}  // namespace sylar::detail

using namespace sylar;          // NOLINT: the names below are libc's
using namespace sylar::detail;  // NOLINT

extern "C" {

int setuid(uid_t id) noexcept { return withoutBirths(g_setuid, id); }
int setgid(gid_t id) noexcept { return withoutBirths(g_setgid, id); }
int seteuid(uid_t id) noexcept { return withoutBirths(g_seteuid, id); }
int setegid(gid_t id) noexcept { return withoutBirths(g_setegid, id); }
int setreuid(uid_t real, uid_t effective) noexcept { return withoutBirths(g_setreuid, real, effective); }
int setregid(gid_t real, gid_t effective) noexcept { return withoutBirths(g_setregid, real, effective); }
int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept { return withoutBirths(g_setresuid, real, effective, saved); }
int setresgid(gid_t real, gid_t effective, gid_t saved) noexcept { return withoutBirths(g_setresgid, real, effective, saved); }
int setgroups(size_t count, const gid_t* groups) noexcept { return withoutBirths(g_setgroups, count, groups); }

/// The lookup suspends a fiber, as getgrouplist does. The rest is made here, as libc makes it.
int initgroups(const char* user, gid_t group) {
  try {
    std::vector<gid_t> groups(64);
    int count = static_cast<int>(groups.size());
    while (::getgrouplist(user, group, groups.data(), &count) < 0) {
      groups.resize(std::max(groups.size() * 2, static_cast<size_t>(count)));
      count = static_cast<int>(groups.size());
    }
    int result;
    do {  // the kernel may take fewer
      result = ::setgroups(static_cast<size_t>(count), groups.data());
    } while (result == -1 && sys::errnoRef() == EINVAL && --count > 0);
    return result;
  } catch (const std::bad_alloc&) {
    sys::errnoRef() = ENOMEM;
    return -1;
  }
}

}  // extern "C"
