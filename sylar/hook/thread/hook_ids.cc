// Calls by which a thread names itself to the kernel by its id. The kernel does not know that of a thread that is a fiber (gettid),
// so it is told of the worker's thread. Source: tgkill(2), timer_create(2), sched_setaffinity(2), setpriority(2).
#include "sylar/fiber/thread_pointer.h"

#ifdef SYLAR_THREAD_POINTER

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"

namespace sylar::detail {
namespace {

#define SYLAR_LIBC_(name) constinit real::Real<decltype(::name)> g_##name(#name, nullptr);
SYLAR_LIBC_(tgkill)
SYLAR_LIBC_(timer_create)
SYLAR_LIBC_(sched_setaffinity)
SYLAR_LIBC_(sched_getaffinity)
SYLAR_LIBC_(sched_setscheduler)
SYLAR_LIBC_(sched_getscheduler)
SYLAR_LIBC_(sched_setparam)
SYLAR_LIBC_(sched_getparam)
SYLAR_LIBC_(setpriority)
SYLAR_LIBC_(getpriority)
#undef SYLAR_LIBC_

/// Returns the id that the kernel has for `id`, if that is the calling thread's.
template <class Id>
Id known(Id id) {
  const FiberThread& me = FiberThread::mine();
  if (!me.isFiber() || static_cast<pid_t>(id) != *me.libc_id) return id;
  const pid_t worker = me.worker.load(std::memory_order_relaxed);
  return worker != 0 ? static_cast<Id>(worker) : id;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar::detail;  // NOLINT: the names below are libc's

extern "C" {

int tgkill(pid_t process, pid_t thread, int signal) { return g_tgkill(process, known(thread), signal); }

int timer_create(clockid_t clock, sigevent* event, timer_t* timer) noexcept {
  if (event == nullptr || event->sigev_notify != SIGEV_THREAD_ID) return g_timer_create(clock, event, timer);
  sigevent told = *event;
  told._sigev_un._tid = known(told._sigev_un._tid);
  return g_timer_create(clock, &told, timer);
}

int sched_setaffinity(pid_t id, size_t size, const cpu_set_t* set) noexcept { return g_sched_setaffinity(known(id), size, set); }
int sched_getaffinity(pid_t id, size_t size, cpu_set_t* set) noexcept { return g_sched_getaffinity(known(id), size, set); }
int sched_setscheduler(pid_t id, int policy, const sched_param* given) noexcept {
  return g_sched_setscheduler(known(id), policy, given);
}
int sched_getscheduler(pid_t id) noexcept { return g_sched_getscheduler(known(id)); }
int sched_setparam(pid_t id, const sched_param* given) noexcept { return g_sched_setparam(known(id), given); }
int sched_getparam(pid_t id, sched_param* given) noexcept { return g_sched_getparam(known(id), given); }

int setpriority(__priority_which_t which, id_t who, int priority) noexcept {
  return g_setpriority(which, which == PRIO_PROCESS ? known(who) : who, priority);
}
int getpriority(__priority_which_t which, id_t who) noexcept {
  return g_getpriority(which, which == PRIO_PROCESS ? known(who) : who);
}

}  // extern "C"

#endif
