// syscall: a call made by its number is hooked as the one made by its name. Source: syscall(2) and the kernel's own interface,
// which differs from libc's in signal masks and in the remaining time. On other machines than x86-64 the library makes its own
// calls by this function, so there it is libc's.
#ifdef __x86_64__

#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <concepts>
#include <csignal>
#include <cstdarg>
#include <utility>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/lock/futex.h"

namespace sylar::detail {
namespace {

/// The arguments of a call, each as the type that its function takes.
class Arguments {
 public:
  explicit Arguments(const long (&values)[6]) : m_values(values) {}

  /// Calls a function with as many of the arguments as it takes.
  template <class Result, class... Args>
  long to(Result (*function)(Args...)) const {
    return call(function, std::index_sequence_for<Args...>());
  }
  template <class Result, class... Args>
  long to(Result (*function)(Args...) noexcept) const {
    return call(function, std::index_sequence_for<Args...>());
  }

  template <class T>
  T at(size_t i) const {
    return static_cast<T>(m_values[i]);
  }
  template <class T>
  T* pointer(size_t i) const {
    return reinterpret_cast<T*>(m_values[i]);
  }

 private:
  struct Argument {
    long value;
    template <class T>
    operator T*() const {  // NOLINT: it becomes what the function takes
      return reinterpret_cast<T*>(value);
    }
    template <std::integral T>
    operator T() const {  // NOLINT
      return static_cast<T>(value);
    }
  };

  template <class Function, size_t... kIndex>
  long call(Function function, std::index_sequence<kIndex...>) const {
    return static_cast<long>(function(Argument{m_values[kIndex]}...));
  }

  const long (&m_values)[6];
};

long failed(int error) { return IoCall::result(-error); }

/// A signal mask as the kernel takes it, with its size, checked and widened to libc's.
class Mask {
 public:
  Mask(const void* mask, size_t size) {
    if (mask == nullptr) return;
    ::sigemptyset(&m_mask);
    if (static_cast<long>(size) != kKernelSize) {
      m_error = EINVAL;
    } else if (!probe::copyIn(&m_mask, mask, kKernelSize)) {
      m_error = EFAULT;
    }
    m_given = true;
  }
  int error() const { return m_error; }
  const sigset_t* get() const { return m_given ? &m_mask : nullptr; }

  static constexpr long kKernelSize = 8;

 private:
  sigset_t m_mask;
  bool m_given = false;
  int m_error = 0;
};

/// Calls `wait(timeout)`, and then writes down how much of the time remains, which the kernel does and libc does not.
template <class Wait>
long tellingRest(timespec* timeout, Wait wait) {
  if (timeout == nullptr) return wait(nullptr);
  timespec wanted;
  if (!probe::copyIn(&wanted, timeout, sizeof wanted)) return failed(EFAULT);
  const int64_t begin_ns = waitClock().nowNs();
  const long n = wait(&wanted);
  const bool unchanged = (wanted.tv_sec == 0 && wanted.tv_nsec == 0) || (n < 0 && sys::errnoRef() == EINVAL);
  if (unchanged) return n;
  const Deadline end = Deadline::at(saturatingAdd(begin_ns, attempt::toNs(wanted)));
  const timespec left = attempt::toTimespec(std::max<int64_t>(end.ns() - waitClock().nowNs(), 0));
  probe::copyOut(timeout, &left, sizeof left);  // memory that cannot be written stays as it is
  return n;
}

long ppollByNumber(const Arguments& arguments) {
  const Mask mask(arguments.pointer<void>(3), arguments.at<size_t>(4));
  if (mask.error() != 0) return failed(mask.error());
  return tellingRest(arguments.pointer<timespec>(2), [&](const timespec* timeout) -> long {
    return ::ppoll(arguments.pointer<pollfd>(0), arguments.at<unsigned>(1), timeout, mask.get());
  });
}

long pselectByNumber(const Arguments& arguments) {
  struct {
    const void* mask = nullptr;
    size_t size = 0;
  } given;
  const void* const sixth = arguments.pointer<void>(5);
  if (sixth != nullptr && !probe::copyIn(&given, sixth, sizeof given)) return failed(EFAULT);
  const Mask mask(given.mask, given.size);
  if (mask.error() != 0) return failed(mask.error());
  return tellingRest(arguments.pointer<timespec>(4), [&](const timespec* timeout) -> long {
    return ::pselect(arguments.at<int>(0), arguments.pointer<fd_set>(1), arguments.pointer<fd_set>(2),
                     arguments.pointer<fd_set>(3), timeout, mask.get());
  });
}

long selectByNumber(const Arguments& arguments) {
  auto* const timeout = arguments.pointer<timeval>(4);
  timeval time;
  if (timeout != nullptr && !probe::copyIn(&time, timeout, sizeof time)) return failed(EFAULT);
  const long n = ::select(arguments.at<int>(0), arguments.pointer<fd_set>(1), arguments.pointer<fd_set>(2),
                          arguments.pointer<fd_set>(3), timeout == nullptr ? nullptr : &time);
  if (timeout != nullptr) probe::copyOut(timeout, &time, sizeof time);  // memory that cannot be written stays as it is
  return n;
}

/// Calls epoll_pwait or epoll_pwait2; `timeout` is the third argument as that takes it.
template <class Function, class Timeout>
long epollByNumber(const Arguments& arguments, Function function, Timeout timeout) {
  const Mask mask(arguments.pointer<void>(4), arguments.at<size_t>(5));
  if (mask.error() != 0) return failed(mask.error());
  return function(arguments.at<int>(0), arguments.pointer<epoll_event>(1), arguments.at<int>(2), timeout, mask.get());
}

long sigsuspendByNumber(const Arguments& arguments) {
  const Mask mask(arguments.pointer<void>(0), arguments.at<size_t>(1));
  if (mask.error() != 0) return failed(mask.error());
  return mask.get() != nullptr ? ::sigsuspend(mask.get()) : failed(EFAULT);
}

long sigtimedwaitByNumber(const Arguments& arguments) {
  const Mask set(arguments.pointer<void>(0), arguments.at<size_t>(3));
  if (set.error() != 0) return failed(set.error());
  if (set.get() == nullptr) return failed(EFAULT);
  return ::sigtimedwait(set.get(), arguments.pointer<siginfo_t>(1), arguments.pointer<timespec>(2));
}

long clockNanosleepByNumber(const Arguments& arguments) {
  const int error = arguments.to(&::clock_nanosleep);
  return error == 0 ? 0 : failed(error);
}

/// Returns true for the commands of fcntl that wait or change what the table knows. libc gives others in another form.
bool isOfHooks(int command) {
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_SETFL || command == F_SETLKW || command == F_OFD_SETLKW;
}

long callOfKernel(long number, const long (&values)[6]) {
  return real::syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

/// Makes a call by a function that may be a cancellation point, as no call by number is one. A fiber's thread may be cancelled
/// nowhere.
template <class Call>
long uncancelled(Call call) {
  if (!onThreadStack()) return call();
  int before = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  const long result = call();
  ::pthread_setcancelstate(before, nullptr);
  return result;
}

/// Makes a call that may wait, in a fiber.
[[gnu::noinline]] long callInFiber(long number, const long (&values)[6]) {
  const Arguments arguments(values);
  switch (number) {
#define SYLAR_SAME_(name) \
  case SYS_##name: return arguments.to(&::name)
    // clang-format off
    SYLAR_SAME_(read); SYLAR_SAME_(readv); SYLAR_SAME_(recvfrom); SYLAR_SAME_(recvmsg); SYLAR_SAME_(recvmmsg);
    SYLAR_SAME_(write); SYLAR_SAME_(writev); SYLAR_SAME_(sendto); SYLAR_SAME_(sendmsg); SYLAR_SAME_(sendmmsg);
    SYLAR_SAME_(sendfile); SYLAR_SAME_(splice); SYLAR_SAME_(tee); SYLAR_SAME_(vmsplice); SYLAR_SAME_(copy_file_range);
    SYLAR_SAME_(pread64); SYLAR_SAME_(preadv); SYLAR_SAME_(pwrite64); SYLAR_SAME_(pwritev);
    SYLAR_SAME_(connect); SYLAR_SAME_(poll); SYLAR_SAME_(epoll_wait);
    SYLAR_SAME_(nanosleep); SYLAR_SAME_(sched_yield); SYLAR_SAME_(pause);
    SYLAR_SAME_(flock); SYLAR_SAME_(fsync); SYLAR_SAME_(fdatasync); SYLAR_SAME_(syncfs);
    SYLAR_SAME_(msync); SYLAR_SAME_(sync_file_range); SYLAR_SAME_(wait4);
    SYLAR_SAME_(mq_timedreceive); SYLAR_SAME_(mq_timedsend); SYLAR_SAME_(msgrcv); SYLAR_SAME_(msgsnd);
    SYLAR_SAME_(semop); SYLAR_SAME_(semtimedop);
    // clang-format on
#undef SYLAR_SAME_
    case SYS_preadv2:
      return ::preadv2(arguments.at<int>(0), arguments.pointer<iovec>(1), arguments.at<int>(2), values[3], arguments.at<int>(5));
    case SYS_pwritev2:
      return ::pwritev2(arguments.at<int>(0), arguments.pointer<iovec>(1), arguments.at<int>(2), values[3], arguments.at<int>(5));
    case SYS_sync: return ::sync(), 0;
    case SYS_stat: return ::stat(arguments.pointer<char>(0), arguments.pointer<struct stat>(1));
    case SYS_lstat: return ::lstat(arguments.pointer<char>(0), arguments.pointer<struct stat>(1));
    case SYS_newfstatat: return arguments.to(&::fstatat);
    case SYS_statx: return arguments.to(&::statx);
    case SYS_gettid: return ::gettid();
    case SYS_tgkill: return ::tgkill(arguments.at<pid_t>(0), arguments.at<pid_t>(1), arguments.at<int>(2));
    case SYS_select: return selectByNumber(arguments);
    case SYS_waitid:
      if (values[4] != 0) break;  // libc gives no way to ask for the child's resources
      return ::waitid(arguments.at<idtype_t>(0), arguments.at<id_t>(1), arguments.pointer<siginfo_t>(2), arguments.at<int>(3));
    case SYS_rt_sigsuspend: return sigsuspendByNumber(arguments);
    case SYS_rt_sigtimedwait: return sigtimedwaitByNumber(arguments);
    case SYS_clock_nanosleep: return clockNanosleepByNumber(arguments);
    case SYS_ppoll: return ppollByNumber(arguments);
    case SYS_pselect6: return pselectByNumber(arguments);
    case SYS_epoll_pwait: return epollByNumber(arguments, &::epoll_pwait, arguments.at<int>(3));
    case SYS_epoll_pwait2: return epollByNumber(arguments, &::epoll_pwait2, arguments.pointer<timespec>(3));
    default: break;
  }
  return callOfKernel(number, values);
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

/// Calls that make, close or change descriptors, and futex, go to the hooks on every thread, others in fibers only. Like libc's it
/// takes six arguments, whether they were passed or not, of which the last lies on the caller's stack.
[[gnu::no_sanitize_address]] long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long values[6];
  for (long& value : values) value = va_arg(list, long);
  va_end(list);
  const Arguments arguments(values);
  const NoCancellationPoint whole;
  switch (number) {
    case SYS_futex: return futexByNumber(values);
#define SYLAR_SAME_(name) \
  case SYS_##name: return uncancelled([&] { return arguments.to(&::name); })
      // clang-format off
    SYLAR_SAME_(close); SYLAR_SAME_(dup); SYLAR_SAME_(dup2); SYLAR_SAME_(dup3); SYLAR_SAME_(shutdown);
    SYLAR_SAME_(socket); SYLAR_SAME_(socketpair); SYLAR_SAME_(accept); SYLAR_SAME_(accept4); SYLAR_SAME_(pipe); SYLAR_SAME_(pipe2);
    SYLAR_SAME_(creat); SYLAR_SAME_(timerfd_create); SYLAR_SAME_(inotify_init); SYLAR_SAME_(inotify_init1);
    SYLAR_SAME_(epoll_create); SYLAR_SAME_(epoll_create1); SYLAR_SAME_(setsockopt);
      // clang-format on
#undef SYLAR_SAME_
    case SYS_close_range:
      return uncancelled(
          [&] { return ::close_range(arguments.at<unsigned>(0), arguments.at<unsigned>(1), arguments.at<int>(2)); });
    case SYS_open:
      return uncancelled([&] { return ::open(arguments.pointer<char>(0), arguments.at<int>(1), arguments.at<mode_t>(2)); });
    case SYS_openat:
      return uncancelled([&] {
        return ::openat(arguments.at<int>(0), arguments.pointer<char>(1), arguments.at<int>(2), arguments.at<mode_t>(3));
      });
    case SYS_eventfd: return uncancelled([&] { return ::eventfd(arguments.at<unsigned>(0), 0); });
    case SYS_eventfd2: return uncancelled([&] { return ::eventfd(arguments.at<unsigned>(0), arguments.at<int>(1)); });
    case SYS_ioctl:
      return uncancelled([&] { return ::ioctl(arguments.at<int>(0), arguments.at<unsigned>(1), arguments.pointer<void>(2)); });
    case SYS_fcntl:
      if (isOfHooks(arguments.at<int>(1)))
        return uncancelled([&] { return ::fcntl(arguments.at<int>(0), arguments.at<int>(1), values[2]); });
      break;
    case SYS_signalfd:
      if (values[1] != 0 && values[2] == Mask::kKernelSize)
        return uncancelled([&] { return ::signalfd(arguments.at<int>(0), arguments.pointer<sigset_t>(1), 0); });
      break;
    case SYS_signalfd4:
      if (values[1] != 0 && values[2] == Mask::kKernelSize)
        return uncancelled(
            [&] { return ::signalfd(arguments.at<int>(0), arguments.pointer<sigset_t>(1), arguments.at<int>(3)); });
      break;
    default: break;
  }
  return onThreadStack() ? callOfKernel(number, values) : callInFiber(number, values);
}

}  // extern "C"

#endif
