// setuid, setgroups and the others that libc makes in every thread of the process (set_ids.h). Where threads are fibers, none may
// begin or end meanwhile. A kernel thread that exits behind libc's back may take libc's signal with it, and libc waits for the
// answer. One that ends a thread is not reached by it, and would keep its rights.
// Source: setuid(2), setresuid(2), setgroups(2), initgroups(3).
#include <grp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/base/worker_local.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/sent_signals.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/thread/left_thread.h"
#include "sylar/hook/thread/set_ids.h"

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

#ifdef SYLAR_THREAD_POINTER

constexpr int kSetIds = 33;  // SIGSETXID of glibc
// The code of a signal says why it was sent. libc's own is SI_TKILL, and SI_QUEUE means a change.
constexpr int kLook = SI_MESGQ;

/// What rt_sigaction(2) takes on x86-64.
struct Action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

constinit std::atomic<decltype(Action::handler)> g_libcs_handler{nullptr};

/// A system call that threads make for themselves which libc's signals do not reach.
struct Change {
  long number;
  long arguments[3];
};
constinit std::atomic<const Change*> g_change{nullptr};  // null when it has been made

/// Makes the change in each thread that is ending.
void changeEndingThreads(const Change& change) SYLAR_REQUIRES(g_births) {
  const auto process = static_cast<pid_t>(sys::call(SYS_getpid));
  for (const pid_t thread : endingThreads()) {
    if (thread == 0 || thread == sys::call(SYS_gettid)) continue;
    siginfo_t told{};
    told.si_code = SI_QUEUE;  // libc's own says SI_TKILL
    told.si_pid = process;
    g_change.store(&change, std::memory_order_release);
    if (sys::call(SYS_rt_tgsigqueueinfo, process, thread, kSetIds, &told) != 0) continue;
    constexpr int64_t kPauseNs = 20'000;
    while (g_change.load(std::memory_order_acquire) != nullptr && exists(thread)) sys::sleepFor(kPauseNs);
    g_change.store(nullptr, std::memory_order_relaxed);
  }
}

/// Runs under the mask of the call that it has interrupted.
void handleSetIds(int signal, siginfo_t* info, void* context) {
  uint64_t mask = 0;
  if (info->si_code == kLook) {
    sys::call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
    return raiseOfSent(~mask);
  }
  if (info->si_code == SI_QUEUE) {
    const Change* const change = g_change.load(std::memory_order_acquire);
    if (change == nullptr) return;
    const auto& [first, second, third] = change->arguments;
    sys::call(change->number, first, second, third);
    g_change.store(nullptr, std::memory_order_release);
    return;
  }
  constexpr uint64_t kAll = ~uint64_t{0};
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, &mask, sizeof mask);  // no other handler may see the worker's thread pointer
  const uintptr_t mine = threadPointer();
  const uintptr_t borrowers = t_to_worker != 0 ? mine + static_cast<uintptr_t>(t_to_worker) : 0;  // it may have moved
  const uintptr_t worker = borrowers != 0 ? borrowers : FiberThread::mine().worker_pointer.load(std::memory_order_relaxed);
  const bool lent = worker != 0 && !sys::inForkedChild();  // a child's one thread is the one that forked
  if (lent) setThreadPointer(worker);
  g_libcs_handler.load(std::memory_order_relaxed)(signal, info, context);
  if (lent) setThreadPointer(mine);
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

/// Makes libc's `call` while no thread that is a fiber begins or ends. `change` is what it does to one thread. In a child of a fork
/// there are no such threads, and the lock may be another thread's.
template <class Call>
int inAllThreads(const Change& change, Call call) {
  if (sys::inForkedChild()) return call();
  const Lock lock(g_births);
  const int result = call();
  if (result == 0) changeEndingThreads(change);
  return result;
}

#else

struct Change {
  long number;
  long arguments[3];
};
template <class Call>
int inAllThreads(const Change&, Call call) {
  return call();
}

#endif

}  // namespace

#ifdef SYLAR_THREAD_POINTER

void hearSetIdsAsWorker() {
  Action action{};
  if (sys::call(SYS_rt_sigaction, kSetIds, nullptr, &action, sizeof action.mask) != 0) return;
  if (action.handler == nullptr || action.handler == &handleSetIds) return;
  g_libcs_handler.store(action.handler, std::memory_order_relaxed);
  action.handler = &handleSetIds;
  action.mask = 0;
  sys::call(SYS_rt_sigaction, kSetIds, &action, nullptr, sizeof action.mask);
}

void interruptThread(pid_t thread) {
  if (g_libcs_handler.load(std::memory_order_relaxed) == nullptr) return;
  const auto process = static_cast<pid_t>(sys::call(SYS_getpid));
  siginfo_t told{};
  told.si_code = kLook;
  told.si_pid = process;
  sys::call(SYS_rt_tgsigqueueinfo, process, thread, kSetIds, &told);
}

#endif

}  // namespace sylar::detail

using namespace sylar;          // NOLINT: the names below are libc's
using namespace sylar::detail;  // NOLINT

extern "C" {

// An id of -1 stays as it is.
int setuid(uid_t id) noexcept {
  return inAllThreads({SYS_setuid, {id}}, [=] { return g_setuid(id); });
}
int setgid(gid_t id) noexcept {
  return inAllThreads({SYS_setgid, {id}}, [=] { return g_setgid(id); });
}
int seteuid(uid_t id) noexcept {
  return inAllThreads({SYS_setresuid, {-1, id, -1}}, [=] { return g_seteuid(id); });
}
int setegid(gid_t id) noexcept {
  return inAllThreads({SYS_setresgid, {-1, id, -1}}, [=] { return g_setegid(id); });
}
int setreuid(uid_t real, uid_t effective) noexcept {
  return inAllThreads({SYS_setreuid, {real, effective}}, [=] { return g_setreuid(real, effective); });
}
int setregid(gid_t real, gid_t effective) noexcept {
  return inAllThreads({SYS_setregid, {real, effective}}, [=] { return g_setregid(real, effective); });
}
int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept {
  return inAllThreads({SYS_setresuid, {real, effective, saved}}, [=] { return g_setresuid(real, effective, saved); });
}
int setresgid(gid_t real, gid_t effective, gid_t saved) noexcept {
  return inAllThreads({SYS_setresgid, {real, effective, saved}}, [=] { return g_setresgid(real, effective, saved); });
}
int setgroups(size_t count, const gid_t* groups) noexcept {
  return inAllThreads({SYS_setgroups, {static_cast<long>(count), reinterpret_cast<long>(groups)}},
                      [=] { return g_setgroups(count, groups); });
}

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
