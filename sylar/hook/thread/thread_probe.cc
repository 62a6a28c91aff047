#include "sylar/hook/thread/thread_probe.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/hook/core/real.h"

namespace sylar::detail {
namespace {

constexpr int64_t kPatienceNs = 1'000'000'000;

struct KnownCall {
  long number;
  const char* name;
  bool bears_signal = false;  ///< see WaitingCall::bearsSignal()
};

/// The calls that wait.
constexpr KnownCall kCalls[] = {
    {SYS_read, "read"},
    {SYS_readv, "readv"},
    {SYS_pread64, "pread"},
    {SYS_write, "write"},
    {SYS_writev, "writev"},
    {SYS_pwrite64, "pwrite"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_sendfile, "sendfile"},
    {SYS_splice, "splice"},
    {SYS_tee, "tee"},
    {SYS_vmsplice, "vmsplice"},
    {SYS_copy_file_range, "copy_file_range"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_close, "close"},
    {SYS_openat, "openat", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_flock, "flock", true},
    {SYS_ioctl, "ioctl"},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_syncfs, "syncfs", true},
    {SYS_sync, "sync", true},
    {SYS_msync, "msync", true},
    {SYS_newfstatat, "stat", true},
    {SYS_statx, "statx", true},
    {SYS_getdents64, "getdents"},
    {SYS_renameat2, "rename"},
    {SYS_unlinkat, "unlink"},
    {SYS_futex, "futex", true},
    {SYS_wait4, "wait4", true},
    {SYS_waitid, "waitid", true},
    {SYS_mq_timedsend, "mq_timedsend"},
    {SYS_mq_timedreceive, "mq_timedreceive"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_epoll_pwait2, "epoll_pwait2"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_rt_sigtimedwait, "sigtimedwait"},
    {SYS_rt_sigsuspend, "sigsuspend"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_io_getevents, "io_getevents"},
#ifdef SYS_poll
    {SYS_open, "open", true},
    {SYS_stat, "stat", true},
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_pause, "pause"},
#endif
};

const KnownCall* find(long number) {
  const auto* const known = std::ranges::find(kCalls, number, &KnownCall::number);
  return known == std::end(kCalls) ? nullptr : known;
}

// ---- The question to a thread. -------------------------------------------------------------------------------------------------

int signalNumber() { return SIGRTMAX - 3; }

// Whose answer is awaited: the id of a thread, kNobody, or what becomes of the answer.
constexpr uint32_t kNobody = 0, kAnswering = ~0u, kAnswered = ~0u - 1;
constinit std::atomic<uint32_t> g_asked{kNobody};
constinit ThreadAnswer* g_answer = nullptr;

/// Returns the address at which the signal found the thread, or null.
const void* interruptedAt([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  return nullptr;
#endif
}

void answer(int, siginfo_t*, void* context) {
  uint32_t asked = static_cast<uint32_t>(sys::call(SYS_gettid));
  if (!g_asked.compare_exchange_strong(asked, kAnswering, std::memory_order_acq_rel)) return;  // too late
  const int saved_errno = errno;
  ThreadAnswer& out = *g_answer;
  const int count = ::backtrace(out.frames.data(), static_cast<int>(out.frames.size()));
  // The handler's own frames come first.
  const auto end = out.frames.begin() + std::max(count, 0);
  const auto begin = std::find(out.frames.begin(), end, interruptedAt(context));
  out.frame_count =
      static_cast<size_t>(begin == end ? std::max(count, 0) : std::copy(begin, end, out.frames.begin()) - out.frames.begin());
  g_asked.store(kAnswered, std::memory_order_release);
  sys::futexWake(g_asked, 1);
  errno = saved_errno;
}

std::string lineOf(void* address) {
  Dl_info info{};
  // A return address may be that of the next function, if the call is the last thing in its own.
  if (::dladdr(static_cast<char*>(address) - 1, &info) == 0) return fmt::format("{}", address);
  const char* const file = info.dli_fname;
  if (info.dli_sname == nullptr) {
    return fmt::format("{}+{:#x}", file, static_cast<char*>(address) - static_cast<char*>(info.dli_fbase));
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status),
                                                          std::free);
  return fmt::format("{} ({})", plain != nullptr ? plain.get() : info.dli_sname, file);
}

}  // namespace

std::string WaitingCall::name() const {
  if (number < 0) return "";
  const KnownCall* const known = find(number);
  return known != nullptr ? known->name : fmt::format("system call {}", number);
}

bool WaitingCall::bearsSignal() const {
  const KnownCall* const known = find(number);
  return number == kNone || (known != nullptr && known->bears_signal && !has_timeout);
}

WaitingCall waitingCallOf(pid_t thread) {
  const std::string path = fmt::format("/proc/self/task/{}/syscall", thread);
  const long fd = sys::call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[256] = "";
  const long size = sys::readFd(static_cast<int>(fd), text, sizeof text - 1);
  sys::closeFd(static_cast<int>(fd));
  if (size <= 0) return {};
  char* at = text;
  const long number = std::strtol(text, &at, 10);
  if (at == text || number < 0) return {WaitingCall::kNone};  // "running", or it waits for memory
  unsigned long timeout = 0;                                  // the fourth argument
  for (int i = 0; i < 4; ++i) timeout = std::strtoul(at, &at, 16);
  return {number, number == SYS_futex && timeout != 0};
}

std::vector<std::string> ThreadAnswer::backtrace() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < frame_count; ++i) lines.push_back(lineOf(frames[i]));
  return lines;
}

void enableAskThread() {
  static const bool installed = [] {
    void* frame;
    ::backtrace(&frame, 1);  // the first call loads a library, which the handler must not do
    struct sigaction action {};
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    return real::sigaction(signalNumber(), &action, nullptr) == 0;  // it is not the program's, and ends no call
  }();
  (void)installed;
}

bool askThread(pid_t thread, ThreadAnswer& answer) {
  static constinit OsMutex s_one;
  Lock lock(s_one);
  g_answer = &answer;
  uint32_t asked = static_cast<uint32_t>(thread);
  g_asked.store(asked, std::memory_order_release);
  if (sys::call(SYS_tgkill, ::getpid(), thread, signalNumber()) == 0) {
    const int64_t deadline_ns = steadyClock().nowNs() + kPatienceNs;
    while (g_asked.load(std::memory_order_acquire) == asked && steadyClock().nowNs() < deadline_ns) {
      sys::futexWait(g_asked, asked, deadline_ns);
    }
  }
  if (g_asked.compare_exchange_strong(asked, kNobody, std::memory_order_acq_rel)) return false;
  while (g_asked.load(std::memory_order_acquire) == kAnswering) sys::futexWait(g_asked, kAnswering, kNever);
  g_asked.store(kNobody, std::memory_order_relaxed);
  return true;
}

}  // namespace sylar::detail
