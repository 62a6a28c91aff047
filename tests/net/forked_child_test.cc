// A forked child that does not exec, and calls whatever it finds of its parent's schedulers: each call has an answer, none hangs,
// and none reaches what both processes have, the epolls, the timerfd and the wake-up descriptors.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/sanitizers.h"
#include "sylar/base/sys.h"
#include "sylar/idle_list.h"
#include "sylar/iomanager.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/tcp_server.h"
#include "sylar/timer_stats.h"
#include "tests/net/server_support.h"
#include "tests/sched/gate.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

/// How `child` of this process ends, or 128 and a signal's number if by that. It has 60 s. Blocks the thread, a worker's, too.
int endOfAFork(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    ::_exit(child());
  }
  int status = -1;
  while (::waitpid(pid, &status, 0) != pid) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Returns the kernel's view of the descriptors that workers wait on: registrations, notifications, and the time that is set, in
/// thousands of seconds.
std::map<std::string, std::string> sharedWithTheChild() {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone || what.rfind("anon_inode:", 0) != 0 || what == "anon_inode:[io_uring]") continue;  // in which the parent goes on
    std::ifstream info("/proc/self/fdinfo/" + entry.path().filename().string());
    std::string& told = all[entry.path().filename().string() + " " + what];
    for (std::string line; std::getline(info, line);) {
      const size_t seconds = line.rfind("it_value: (", 0) == 0 ? line.find('(') + 1 : 0;
      told += seconds == 0 ? line : std::to_string((std::stoul(line.substr(seconds)) + 999) / 1000);
      told += '\n';
    }
  }
  return all;
}

/// A manager with something of everything.
struct Quiet {
  explicit Quiet(IOManager& manager) : iom(manager) {}
  ~Quiet() {
    for (const int end : pipe) ::close(end);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  IOManager& iom;
  std::array<int, 2> pipe = [] {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    return ends;
  }();
  std::shared_ptr<test::TestServer> server = test::TestServer::started(iom, &test::echo);
  Fiber::ptr held = std::make_shared<Fiber>([] { Fiber::YieldToHold(); });
  Timer::ptr cancelled = iom.addTimer(3'600'000, [] {});
  IdleEntry entry;
  IdleList<int> idle{iom, 1h, [](const std::shared_ptr<int>&) {}};
  const std::shared_ptr<int> what = std::make_shared<int>(0);
};

/// In the child: the number of the first call with another answer than the documented one, or 0.
int callAll(Quiet& parents) {
  IOManager& iom = parents.iom;
  int call = 0;
  int wrong = 0;
  const auto answers = [&](bool right) {
    ++call;
    if (!right && wrong == 0) wrong = call;
  };
  const auto throwsLogicError = [&](const auto& what) {
    try {
      what();
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  };
  const auto fresh = [] { return std::make_shared<Fiber>([] {}); };
  // Descriptors.
  answers(iom.addEvent(parents.pipe[0], IOManager::READ, [] {}) == -1 && errno == ECANCELED);
  answers(iom.addEvent(parents.pipe[0], IOManager::READ) == -1 && errno == ECANCELED);
  answers(!iom.delEvent(parents.pipe[0], IOManager::READ));
  answers(!iom.cancelEvent(parents.pipe[0], IOManager::READ));
  answers(!iom.cancelAll(parents.pipe[0]));
  // Work.
  iom.schedule([] { ::_exit(99); });
  answers(!iom.trySchedule([] { ::_exit(99); }));
  answers(!iom.trySchedule([] { ::_exit(99); }, static_cast<int>(sys::threadId())));
  answers(!iom.trySchedule(fresh()) && !iom.trySchedule(parents.held));
  std::vector<std::function<void()>> several(3, [] { ::_exit(99); });
  iom.schedule(several.begin(), several.end());
  answers(!iom.place([] { ::_exit(99); }));
  answers(!iom.switchTo());
  { const SchedulerSwitcher nowhere(&iom); }
  parents.held->cancel();
  answers(throwsLogicError([&] { parents.held->join(); }));
  answers(throwsLogicError([&] { fresh()->join(); }));
  Fiber::YieldToReady();
  Fiber::YieldToHold();
  std::ostringstream dumped;
  answers(!iom.dump(dumped).fail() && dumped.str() == "scheduler parent: the parent's\n");
  (void)iom.getWorkerStats();
  answers(iom.getIOTimerStats().passes == 0);
  answers(iom.getName() == "parent");
  // Timers.
  const Timer::ptr timer = iom.addTimer(
      1, [] { ::_exit(99); }, true);
  answers(timer != nullptr && !timer->cancel() && !timer->refresh() && !timer->reset(1, true));
  answers(!iom.addConditionTimer(
                  1, [] {}, parents.what)
               ->cancel());
  answers(!parents.cancelled->refresh() && !parents.cancelled->reset(1, true) && !parents.cancelled->cancel());
  parents.cancelled->fire();
  Timer::rearm(parents.cancelled);
  const TimerId id = iom.startTimer(1ms, [] { ::_exit(99); });
  answers(id == 0 && iom.stopTimer(id) == TimerStop::kGone && iom.stopTimerSync(id) == TimerStop::kGone);
  {
    ScopedTimer scoped(iom, 1ms, [] { ::_exit(99); });
    answers(scoped.stop() == TimerStop::kGone);
  }
  answers(iom.getNextTimer() == ~0ULL && iom.observeNextDue() == kNever && !iom.hasTimer() && !iom.detectClockRollover());
  std::vector<std::function<void()>> expired;
  iom.listExpiredCb(expired);
  std::vector<Timer::ptr> due;
  answers(!iom.collectDue(10, due) && !iom.tryCollectDue(10, due) && due.empty() && expired.empty());
  answers(iom.getStats().armed == 0);
  parents.entry.touch();
  answers(!parents.entry.remove());
  {
    IdleEntry other;
    parents.idle.add(other, parents.what);
    answers(parents.idle.size() == 0);
  }
  // Servers.
  answers(parents.server->start() == false && errno == ECANCELED);
  parents.server->stop();
  answers(!parents.server->join());
  answers(!parents.server->getSocks().front()->cancelAll());
  answers(parents.server->getSocks().front()->close());
  // The end.
  answers(throwsLogicError([&] { iom.start(); }));
  answers(throwsLogicError([] { const IOManager mine(1, false, "child"); }));
  {
    Scheduler mine(1, false, "child");
    answers(!mine.trySchedule([] { ::_exit(99); }));
    answers(throwsLogicError([&] { mine.start(); }));
  }
  iom.stop();
  answers(!iom.stop(Deadline::after(1h)).clean);
  if (Scheduler::GetThis() == nullptr) iom.~IOManager();
  return wrong;
}

/// The parent's manager does all that it did.
void checkAtWork(Quiet& parents) {
  IOManager& iom = parents.iom;
  test::Gate done;
  iom.addTimer(1, [&] { done.open(); });
  iom.startTimer(1ms, [&] { done.open(); });
  EXPECT_EQ(iom.addEvent(parents.pipe[0], IOManager::READ, [&] { done.open(); }), 0);
  EXPECT_EQ(::write(parents.pipe[1], "x", 1), 1);
  iom.schedule([&] { done.open(); });
  EXPECT_TRUE(done.wait(4));
  const Socket::ptr client = test::connectedTo(parents.server->address());
  EXPECT_TRUE(test::echoes(*client));
  client->close();
  iom.schedule(parents.held);
  parents.held->join();
  EXPECT_TRUE(parents.cancelled->cancel());
  EXPECT_TRUE(parents.entry.remove());
  parents.server->stop();
}

/// From there on nothing moves without the test.
void start(Quiet& parents) {
  parents.idle.add(parents.entry, parents.what);
  parents.iom.schedule(parents.held);
  const std::string all_asleep = fmt::format("{0} workers, {0} asleep", coreOf(parents.iom).workers().size());
  ASSERT_TRUE(test::eventually([&] {
    std::ostringstream dumped;
    parents.iom.dump(dumped);
    const std::string text = dumped.str();
    size_t fibers = 0;  // the one that is held, and the one that accepts
    for (size_t at = 0; (at = text.find("    fiber ", at)) != std::string::npos; ++at) ++fibers;
    return fibers == 2 && text.find(all_asleep) != std::string::npos;
  }));
}

// FM-21
TEST(ForkedChild, OfAPlainThreadHasAnAnswerToEachCallAndLeavesTheParentUnharmed) {
  IOManager iom(2, false, "parent");
  Quiet parents(iom);
  start(parents);
  const auto before = sharedWithTheChild();
  ASSERT_GE(before.size(), 5u) << "two workers, and a timerfd";
  EXPECT_EQ(endOfAFork([&] { return callAll(parents); }), 0);
  EXPECT_EQ(sharedWithTheChild(), before);
  checkAtWork(parents);
}

// FM-21
TEST(ForkedChild, OfAFiberHasAnAnswerToEachCallAndLeavesTheParentUnharmed) {
  IOManager iom(1, false, "parent");
  Quiet parents(iom);
  start(parents);
  test::Gate done;
  iom.schedule([&] {
    const auto before = sharedWithTheChild();
    EXPECT_EQ(endOfAFork([&] { return callAll(parents); }), 0);
    EXPECT_EQ(sharedWithTheChild(), before);
    done.open();
  });
  ASSERT_TRUE(done.wait());
  checkAtWork(parents);
}

// FM-21: whatever the other threads were doing; none of their locks is ever released in the child.
TEST(ForkedChild, TakesNoLockThatItsParentsThreadsMayHold) {
#ifdef SYLAR_ASAN
  GTEST_SKIP() << "AddressSanitizer's own allocator keeps its locks in a child that was forked beside threads";
#endif
#ifdef SYLAR_TSAN
  constexpr int kForks = 30;
#else
  constexpr int kForks = 60;
#endif
  IOManager iom(2, false, "parent");
  Quiet parents(iom);
  start(parents);
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  for (const std::function<void()>& what : std::vector<std::function<void()>>{
           [&] { iom.addTimer(3'600'000, [] {})->cancel(); },
           [&] { iom.stopTimer(iom.startTimer(1h, [] {})); },
           [&] { parents.entry.touch(); },
           [&] {
             const auto fiber = std::make_shared<Fiber>([] {});
             iom.schedule(fiber);
             fiber->join();
           },
           [&] {
             std::ostringstream dumped;
             iom.dump(dumped);
             (void)iom.getIOTimerStats();
           },
       }) {
    busy.emplace_back([&over, what] {
      while (!over.load()) what();
    });
  }
  for (int i = 0; i < kForks && !testing::Test::HasFailure(); ++i) {
    EXPECT_EQ(endOfAFork([&] { return callAll(parents); }), 0) << "fork " << i;
  }
  over.store(true);
  for (std::thread& thread : busy) thread.join();
  checkAtWork(parents);
}

/// With static storage: destroyed by exit(), in the child, too.
void forkAndExitBesideAStaticManager() {
  static IOManager iom(2, true, "static");
  const int child = endOfAFork([]() -> int { std::exit(7); });
  iom.schedule([child] { std::_Exit(child); });
  iom.stop();
  std::_Exit(1);
}

TEST(ForkedChildDeathTest, ExitsWithItsCodeThoughTheParentsManagerHasStaticStorage) {
#ifdef SYLAR_ASAN
  GTEST_SKIP() << "LeakSanitizer takes what the parent's threads hold for leaked";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(forkAndExitBesideAStaticManager(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace sylar
