#include "tests/faults/enumerate.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/log.h"
#include "sylar/base/raw_line.h"
#include "sylar/base/sanitizers.h"
#include "sylar/sync/blocking_pool.h"
#include "tests/support/fibers.h"

#ifdef SYLAR_ASAN
#include <sanitizer/lsan_interface.h>
#endif
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace sylar::faults {
namespace {

constexpr unsigned kPatienceSeconds = 30;  // far above what a run takes
constexpr long kMostRuns = 5000;           // far above what a scenario calls
constexpr int kCleanRuns = 3;              // in a row, for threads do not count alike each time
constexpr long kMappedSlack = 4 << 20;     // slabs and chunks that the process keeps

constinit std::atomic<Trial*> g_trial{nullptr};
constinit char g_what[256] = {};
constinit int g_report = STDERR_FILENO;

/// The end of a run that hangs, or that something ended: says which. The library's own log lines are written, and not shown.
void onEnd(int signal) {
  RawLine line;
  line.text(signal == SIGALRM ? "hangs: " : "aborted: ").text(g_what).text("\n").writeTo(g_report);
  ::signal(SIGABRT, SIG_DFL);
  std::abort();
}

class Stage : public testing::Environment {
 public:
  void SetUp() override {
    g_report = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
    __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(g_report)));
#endif
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
    ::signal(SIGALRM, onEnd);
    ::signal(SIGABRT, onEnd);
    ::signal(SIGPIPE, SIG_IGN);
    makePlaces();
  }

 private:
  /// Each thread with fibers takes a place among the counts of fibers, which stays for later threads.
  static void makePlaces() {
    constexpr int kThreads = 32;
    std::latch all(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&all] {
        Fiber::GetThis();
        all.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};
[[maybe_unused]] const auto* const g_stage = testing::AddGlobalTestEnvironment(new Stage);

/// True: nothing failed, and the run passed clean.
bool runOnce(const Fault& fault, long nth, const Scenario& scenario) {
  const std::string what = describe(fault) + ", call " + std::to_string(nth);
  SCOPED_TRACE(what);
  g_what[what.copy(g_what, sizeof g_what - 1)] = 0;
  const long blocks = liveBlocks();
  bool fired;
  std::thread([&] {  // at its end it gives back what a thread keeps for its next fibers
    SCOPED_TRACE(what);
    Fiber::GetThis();
    const test::LeakCheck leaks;
    Trial trial(fault);
    ::alarm(kPatienceSeconds);
    arm(fault, nth);
    scenario(trial);
    fired = disarm();
    BlockingPool::process().endAll();
    ::alarm(0);
    trial.verify();
    EXPECT_TRUE(fired || trial.complete());
  })
      .join();
  EXPECT_EQ(liveBlocks(), blocks) << "blocks of memory are left, or gone";
  return !fired;
}

}  // namespace

Trial::Trial(const Fault& fault) : m_fault(fault) {
  g_trial = this;
  Fiber::SetExceptionHandler([](uint64_t, const std::string&, const std::exception_ptr& exception) {
    Trial& trial = *g_trial;
    EXPECT_THROW(std::rethrow_exception(exception), std::bad_alloc);
    trial.m_unstarted.fetch_add(1);
    trial.m_complete = false;
  });
}

Trial::~Trial() { Fiber::SetExceptionHandler(nullptr); }

long Trial::checked(long result, std::initializer_list<int> also) {
  if (result >= 0) return result;
  const int error = errno;
  const Exempt exempt;
  const bool excused = error == ENOMEM || error == m_fault.error || std::find(also.begin(), also.end(), error) != also.end();
  EXPECT_TRUE(excused) << "errno is " << error;
  m_complete = false;
  return result;
}

void Trial::join(Fiber& fiber) {
  try {
    fiber.join();
  } catch (const std::bad_alloc&) {
    m_unstarted.fetch_add(1);
    m_complete = false;
  }
}

void Trial::verify() const {
  if (m_drops) {
    EXPECT_LE(m_ran + m_unstarted, m_accepted);
  } else if (m_tries_again) {
    EXPECT_EQ(m_ran, m_accepted);
  } else {
    EXPECT_EQ(m_ran + m_unstarted, m_accepted);
  }
}

std::vector<Fault> usualFaults() {
  return {
      {Kind::kNew},
      {.kind = Kind::kNew, .width = 5},
      {.kind = Kind::kNew, .width = kAllFromThere},
      {Kind::kMap, ENOMEM},
      {.kind = Kind::kMap, .error = ENOMEM, .width = kAllFromThere},
      {Kind::kAdvise, ENOMEM},
      {Kind::kEpollCreate, EMFILE},
      {Kind::kEpollControl, ENOMEM},
      {Kind::kEpollControl, ENOSPC},
      {.kind = Kind::kEpollControl, .error = ENOSPC, .width = kAllFromThere},
      {Kind::kTimerFd, EMFILE},
      {Kind::kThread, EAGAIN},
      {Kind::kAccept, EMFILE},
      {Kind::kAccept, ECONNABORTED},
  };
}

std::vector<Fault> passingFaults() {
  std::vector<Fault> faults = usualFaults();
  std::erase_if(faults, [](const Fault& fault) { return fault.width == kAllFromThere; });
  return faults;
}

long enumerate(const Fault& fault, const Scenario& scenario) {
  int clean = 0;
  for (long nth = 1; nth < kMostRuns; ++nth) {
    clean = runOnce(fault, nth, scenario) ? clean + 1 : 0;
    if (clean == kCleanRuns || testing::Test::HasFailure()) return nth - clean;
  }
  ADD_FAILURE() << describe(fault) << " does not come to an end";
  return kMostRuns;
}

void enumerate(std::span<const Fault> faults, const Scenario& scenario) {
  {  // what the process keeps forever is there from here on
    const size_t threads = test::threadsToStay();
    log::warn("a first line");
    {
      Trial warm({});
      scenario(warm);
    }
    BlockingPool::process().endAll();
    test::awaitThreads(threads);
  }
  const long mapped = mappedBytes();
  for (const Fault& fault : faults) {
    const long runs = enumerate(fault, scenario);
    if (testing::Test::HasFailure()) return;
    if (runs > 0) std::cout << "  " << describe(fault) << ": " << runs << " runs that failed somewhere\n";
  }
  EXPECT_LE(mappedBytes(), mapped + kMappedSlack);
}

long enumerateCold(const Fault& fault, const Scenario& scenario) {
  enum Outcome { kClean, kFired, kFailed };
  for (long nth = 1; nth < kMostRuns; ++nth) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string what = describe(fault) + ", cold, call " + std::to_string(nth);
      g_what[what.copy(g_what, sizeof g_what - 1)] = 0;
      SCOPED_TRACE(what);
      bool fired;
      {
        Trial trial(fault);
        ::alarm(kPatienceSeconds);
        arm(fault, nth);
        scenario(trial);
        fired = disarm();
        trial.verify();
        EXPECT_TRUE(fired || trial.complete());
      }
      BlockingPool::process().endAll();
#ifdef SYLAR_ASAN
      EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
#endif
      std::fflush(stdout);
      ::_exit(testing::Test::HasFailure() ? kFailed : fired ? kFired : kClean);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    const bool fired = WIFEXITED(status) && WEXITSTATUS(status) == kFired;
    EXPECT_TRUE(fired || (WIFEXITED(status) && WEXITSTATUS(status) == kClean)) << describe(fault) << ", call " << nth;
    if (!fired) return nth - 1;
  }
  ADD_FAILURE() << describe(fault) << " does not come to an end";
  return kMostRuns;
}

}  // namespace sylar::faults
