// RG-05: what a process does once (its first thread, slot, chunk, log line) or keeps forever (a fiber that is abandoned), each
// call in turn failing. Each run is a process of its own, made by one in which no worker has ever run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/log/log_writer.h"
#include "sylar/sched/worker_slot.h"
#include "sylar/scheduler.h"
#include "tests/faults/enumerate.h"
#include "tests/log/directory.h"
#include "tests/sched/gate.h"

namespace sylar::faults {
namespace {

const Fault kFaults[] = {
    {Kind::kNew},
    {.kind = Kind::kNew, .width = 3},
    {Kind::kMap, ENOMEM},
    {Kind::kAdvise, EINVAL},
    {Kind::kEventFd, EMFILE},
    {Kind::kEpollCreate, EMFILE},
    {Kind::kEpollControl, ENOMEM},
    {Kind::kTimerFd, EMFILE},
    {Kind::kThread, EAGAIN},
};

// FM-04, FM-23, FM-35: a second attempt, with all that is needed, succeeds; and no slot is made for nothing.
void startFirstManager(Trial& trial) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    trial.passes([&] {
      IOManager iom(3, false, "the first of all, with a long name");
      for (int i = 0; i < 4; ++i) trial.accepts([&] { return iom.trySchedule(trial.work()); });
      iom.schedule(nullptr);  // a log line
    });
  }
  const Exempt exempt;
  EXPECT_LE(WorkerSlot::opened(), 3u);
}

TEST(ColdFaults, TheFirstIOManager) {
  for (const Fault& fault : kFaults) {
    const long failed = enumerateCold(fault, startFirstManager);
    EXPECT_GT(failed, 0) << describe(fault);
    if (HasFailure()) return;
  }
}

// FM-04. Cause: what threw had nobody to tell, and its reporter was made at the first report.
TEST(ColdFaults, TheFirstExceptionThatNobodyTakes) {
  enumerateCold({Kind::kNew}, [](Trial& trial) {
    Fiber::SetExceptionHandler(nullptr);
    trial.passes([&] {
      IOManager iom(1, false, "first");
      trial.accepts([&] { return iom.trySchedule(trial.work([] { throw 1; })); });
    });
  });
}

// FM-04: the line after the one for which no thread could be had asks for a thread again.
TEST(ColdFaults, TheFirstThreadOfALog) {
  const long refused = enumerateCold({Kind::kThread, EAGAIN}, [](Trial& /*trial*/) {
    const test::Directory directory;
    const std::string path = directory / "log";
    const auto writer = LogWriter::toFile(path);
    writer->append("one\n");
    writer->append("two\n");
    EXPECT_TRUE(test::eventually([&] { return test::contentOf(path) == "one\ntwo\n"; }));
  });
  EXPECT_EQ(refused, 1);
}

/// Waits again and again regardless.
void insist() {
  for (;;) Fiber::YieldToHold();
}

// FM-04: a fiber that is abandoned is kept forever, so each run has a process of its own. No memory for the report: still not
// clean.
TEST(ColdFaults, FibersThatAreGivenUp) {
  for (const Fault& fault : {Fault{Kind::kNew}, Fault{.kind = Kind::kNew, .width = 20}}) {
    enumerateCold(fault, [](Trial& trial) {
      trial.passes([&] {
        IOManager iom(2, false, "abandoned");
        const auto fiber = std::make_shared<Fiber>(trial.work(insist));
        fiber->setName("one that insists, and has a long name");
        const bool accepted = trial.accepts([&] { return iom.trySchedule(fiber); });
        trial.accepts([&] { return iom.trySchedule(trial.work(insist)); });
        while (accepted && stateOf(*fiber) != FiberState::kHeld && !isOver(stateOf(*fiber))) std::this_thread::yield();
        const auto stop = [&] { return iom.stop(Deadline::after(std::chrono::seconds(20), steadyClock())).clean; };
        for (bool told = false; !told;) {
          told = trial.passes([&] { EXPECT_NE(stop(), accepted); });
        }
        if (!accepted) return;
        EXPECT_THROW(fiber->join(), std::exception);
      });
    });
  }
}

// FM-04: a worker that is inside a fiber after the deadline is detached.
TEST(ColdFaults, AWorkerThatDoesNotComeBack) {
  for (const Fault& fault : {Fault{Kind::kNew}}) {
    enumerateCold(fault, [](Trial& trial) {
      trial.passes([&] {
        IOManager iom(2, false, "stuck");
        std::atomic<bool> begun{false};
        static constinit std::atomic<bool> s_over{false};
        const auto stuck = trial.work([&begun] {
          begun = true;
          while (!s_over) std::this_thread::yield();
        });
        if (!trial.accepts([&] { return iom.trySchedule(stuck); })) return;
        while (!begun) std::this_thread::yield();
        trial.accepts([&] { return iom.trySchedule(trial.work(insist)); });
        for (bool told = false; !told;) {
          told =
              trial.passes([&] { EXPECT_FALSE(iom.stop(Deadline::after(std::chrono::milliseconds(0), steadyClock())).clean); });
        }
        s_over = true;
        trial.dropsWork();  // what had not begun never will
      });
    });
  }
}

/// A pipe whose ends have numbers that no entry was made for yet.
struct HighPipe {
  HighPipe() {
    constexpr int kFirst = 4096;
    int low[2];
    EXPECT_EQ(::pipe2(low, O_CLOEXEC), 0);
    for (const int end : {0, 1}) {
      ends[end] = static_cast<int>(::fcntl(low[end], F_DUPFD_CLOEXEC, kFirst));
      EXPECT_GE(ends[end], kFirst);
      ::close(low[end]);
    }
  }
  ~HighPipe() {
    for (const int end : ends) ::close(end);
  }
  int ends[2] = {-1, -1};
};

// FM-03. Cause: a descriptor without an entry was left out of the wait, which then nothing ended.
TEST(ColdFaults, PollOnANumberThatHasNoEntryYet) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8192);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const long failed = enumerateCold({.kind = Kind::kMap, .error = ENOMEM, .width = 3}, [](Trial& trial) {
    const HighPipe pipe;
    trial.passes([&] {
      IOManager iom(1, false, "high");
      const auto poller = std::make_shared<Fiber>(trial.work([&] {
        pollfd one{pipe.ends[0], POLLIN, 0};
        if (trial.checked(::poll(&one, 1, -1)) < 0) return;
        EXPECT_EQ(one.revents, POLLIN);
      }));
      const auto writer = std::make_shared<Fiber>(trial.work([&] {
        while (stateOf(*poller) != FiberState::kParked && !isOver(stateOf(*poller))) Fiber::YieldToReady();
        EXPECT_EQ(::write(pipe.ends[1], "x", 1), 1);
      }));
      const bool polls = trial.accepts([&] { return iom.trySchedule(poller); });
      if (trial.accepts([&] { return iom.trySchedule(writer); })) trial.join(*writer);
      EXPECT_EQ(::write(pipe.ends[1], "x", 1), 1);
      if (polls) trial.join(*poller);
    });
  });
  EXPECT_GT(failed, 3);
}

TEST(ColdFaults, EventOnANumberThatHasNoEntryYet) {  // FM-03
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8192);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  enumerateCold({.kind = Kind::kMap, .error = ENOMEM, .width = 3}, [](Trial& trial) {
    const HighPipe pipe;
    EXPECT_EQ(::write(pipe.ends[1], "x", 1), 1);
    trial.passes([&] {
      IOManager iom(1, false, "high");
      trial.accepts([&] { return trial.checked(iom.addEvent(pipe.ends[0], IOManager::READ, trial.work())) == 0; });
    });
  });
}

}  // namespace
}  // namespace sylar::faults
