#include "sylar/run/report.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/base/raw_line.h"
#include "sylar/base/sys.h"
#include "sylar/hook/core/hook_count.h"
#include "sylar/hook_stats.h"
#include "sylar/watchdog.h"

namespace sylar::detail {
namespace {

using std::chrono::milliseconds;

/// The thread counts as held after this time.
constexpr milliseconds kHeld{10};

/// What stderr was at the start, under a number of the library's own. Programs close theirs before the report is written, such as
/// those of the GNU coreutils.
int g_stderr = STDERR_FILENO;

void keepStderr() {
  const int copy = sys::keepOwn(sys::call(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  if (copy < 0) return;
  g_stderr = copy;
  ::pthread_atfork(nullptr, nullptr, [] {  // a child that leaves its terminal or pipe must not keep it
    if (g_stderr != STDERR_FILENO) sys::closeFd(std::exchange(g_stderr, STDERR_FILENO));
  });
}

/// What has held the thread, all times with the same call from the same place taken together.
struct Holder {
  std::string what;
  std::string where;
  uint64_t times = 0;
};

/// Returns the innermost frame that is neither libc's nor the hooks', as backtrace_symbols(3) has it.
std::string callerOf(const std::vector<std::string>& backtrace) {
  for (const std::string& frame : backtrace) {
    const std::string_view file = std::string_view(frame).substr(0, frame.find('('));
    const bool inside =
        file.find("libc.so") != file.npos || file.find("libsylar-run") != file.npos || file.find("[vdso]") != file.npos;
    if (!inside) return frame.substr(0, frame.find(" ["));
  }
  return "";
}

/// Columns of a line, the first to the left, numbers to the right.
class Row {
 public:
  Row& left(std::string_view text, size_t width) { return pad(text, width, true); }
  Row& right(std::string_view text, size_t width) { return pad(text, width, false); }
  Row& right(uint64_t number, size_t width) { return right(std::to_string(number), width); }
  void write() const { RawLine().text(m_text).text("\n").writeTo(g_stderr); }

 private:
  Row& pad(std::string_view text, size_t width, bool left) {
    const std::string space(width > text.size() ? width - text.size() : 0, ' ');
    m_text += left ? std::string(text) + space : space + std::string(text);
    return *this;
  }
  std::string m_text = "  ";
};

class RunReport {
 public:
  explicit RunReport(Scheduler& scheduler) : m_watchdog(scheduler, kHeld, [this](const HeldWorker& held) { note(held); }) {}

  void write() {
    std::vector<HookStats> calls = hookStats();
    std::stable_sort(calls.begin(), calls.end(), [](const HookStats& a, const HookStats& b) { return a.parked > b.parked; });
    RawLine head;
    head.text("sylar-run: ")
        .text(nameOfProgram())
        .text(" (")
        .number(static_cast<uint64_t>(::getpid()))
        .text(") made these calls in main\n");
    head.writeTo(g_stderr);
    Row().left("call", 24).right("calls", 10).right("waits", 10).right("waited ms", 12).write();
    for (const HookStats& one : calls) {
      const auto waited = std::chrono::duration_cast<milliseconds>(one.parked);
      Row().left(one.name, 24).right(one.calls, 10).right(one.parks, 10).right(static_cast<uint64_t>(waited.count()), 12).write();
    }
    const Lock lock(m_mutex);
    if (m_holders.empty()) return RawLine().text("sylar-run: nothing held the thread for 10 ms\n").writeTo(g_stderr);
    RawLine().text("sylar-run: these held the thread for more than 10 ms\n").writeTo(g_stderr);
    Row().left("what", 24).right("times", 10).left("  where", 10).write();
    for (const Holder& one : m_holders) Row().left(one.what, 24).right(one.times, 10).left("  " + one.where, 10).write();
  }

 private:
  static std::string nameOfProgram() {
    std::array<char, 256> path{};
    const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
    const std::string_view text(path.data(), size > 0 ? static_cast<size_t>(size) : 0);
    return std::string(text.substr(text.find_last_of('/') + 1));
  }

  void note(const HeldWorker& held) {
    if (held.call.starts_with("epoll_")) return;  // the worker's own wait, which it was about to begin
    const std::string what = held.call.empty() ? "computing" : held.call;
    const std::string where = callerOf(held.backtrace);
    const Lock lock(m_mutex);
    for (Holder& one : m_holders) {
      if (one.what == what && one.where == where) return void(++one.times);
    }
    m_holders.push_back({what, where, 1});
  }

  OsMutex m_mutex;
  std::vector<Holder> m_holders SYLAR_GUARDED_BY(m_mutex);
  Watchdog m_watchdog;  // the last member, because it uses the others
};

RunReport* g_report = nullptr;
pid_t g_process = 0;

/// Not in a child, which has not run the calls.
void writeReport() {
  if (::getpid() != g_process) return;
  try {
    g_report->write();
  } catch (const std::bad_alloc&) {
    RawLine().text("sylar-run: no memory for the report\n").writeTo(g_stderr);
  }
}

}  // namespace

void beginReport(Scheduler& scheduler) {
  if (std::getenv(kReportVariable) == nullptr) return;
  try {
    keepStderr();
    g_times_each_wait.store(true, std::memory_order_relaxed);
    g_report = new RunReport(scheduler);  // never destroyed: exit runs in the fiber, and the worker goes on
    g_process = ::getpid();
    std::atexit(writeReport);
  } catch (const std::exception& error) {
    RawLine().text("sylar-run: no report: ").text(error.what()).text("\n").writeTo(STDERR_FILENO);
  }
}

}  // namespace sylar::detail
