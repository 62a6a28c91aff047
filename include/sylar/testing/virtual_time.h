// Virtual time for tests. A day of sleeps, timeouts and timers takes milliseconds, and gives the same result each time.
//
//   sylar::VirtualTime time;
//   time.run([] {
//     sleep(24 * 3600);  // every wait uses the virtual clock
//   });
//   EXPECT_EQ(time.elapsed(), 24h);
//
// Or with your own schedulers, and a clock that the test moves:
//
//   sylar::VirtualTime time(sylar::VirtualTime::kByHand);
//   sylar::IOManager iom({.threads = 2, .use_caller = false, .clock = &time});
//   iom.addTimer(60'000, [&] { ++fired; });
//   time.advance(59s);  // returns when everything that is due by then is done
//   EXPECT_EQ(fired, 0);
//   time.advance(1s);
//   EXPECT_EQ(fired, 1);
//
// ~IOManager and stop() wait for fibers that still sleep, and with kByHand nothing moves the clock for them. So call advance()
// far enough before, or stop(deadline), which cancels them. A scheduler on this clock must have use_caller = false (else it
// throws), since work that waits for a caller, which works only inside stop(), would not hold the clock.
//
// The clock moves only when every worker of every scheduler on it is idle: no fiber is runnable, no work is queued, no
// descriptor with a waiter is ready, no function runs on a helper thread (as name lookups do), and no Hold exists. Then it goes
// to the next deadline at once. With one worker everything happens in the same order each time.
//
// These use the virtual clock: hooked sleeps, SO_RCVTIMEO and SO_SNDTIMEO, timeouts of poll and connect, timers of IOManager.
// These stay on real time: time(2), clock_gettime(2) and std::chrono's clocks, max_wait, the deadline of stop(), and everything
// on plain threads. A Deadline for a wait in a fiber on this clock must name the clock: Deadline::after(10s, time). Otherwise it
// is a time of the steady clock, which here is hours away or long past.
//
// Work that the clock cannot see takes no time on it, such as that of other processes and of your own threads
// (docs/design/testing.md). A fiber that waits for such work with a timeout gets the timeout, unless a Hold stops the clock.
// Between two calls from a plain thread a day may pass, so make both under one Hold. The clock sees TCP connections within the
// process; data that the kernel holds back costs its real time.
//
// Thread safety: all calls from any thread, except that run(), advance() and awaitIdle() must not be called from fibers, which
// would wait for themselves (checked).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "sylar/api.h"
#include "sylar/clock.h"

namespace sylar {

/// A clock that begins at 0 and never goes back. Any number of schedulers may run on it, at the same time or one after the other.
class SYLAR_API VirtualTime final : public Clock {
 public:
  enum Moves {
    kByItself,  ///< the clock moves to the next deadline whenever all workers are idle
    kByHand,    ///< the clock moves in the same way, but only as far as advance() allows
  };

  /// Throws std::bad_alloc.
  explicit VirtualTime(Moves moves = kByItself);
  /// Requires that all schedulers on it have stopped (checked). Fibers that outlasted their stop(deadline), and Holds, may
  /// outlast it.
  ~VirtualTime() override;
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  int64_t nowNs() const override;
  /// Returns the time since the clock was made.
  std::chrono::nanoseconds elapsed() const { return std::chrono::nanoseconds(nowNs()); }

  /// Runs `body` in a fiber of its own IOManager, with `threads` workers in [1, 1024], and returns when `body` has ended. Work
  /// that it has started and not waited for is then cancelled, and sees no later time. An exception of `body` comes out here.
  ///
  /// If all fibers wait and nothing that they wait for is armed, they would wait without end. Then all are cancelled, and a
  /// std::runtime_error says which fiber waits for what, whatever `body` then throws. A fiber that does not end within ten
  /// seconds of real time is abandoned (see Scheduler::stop). Then a std::runtime_error names it, unless `body` has thrown, and
  /// everything that it uses must outlive it. Other exceptions are those of IOManager.
  ///
  /// Not with kByHand (checked). Blocks the thread.
  void run(std::function<void()> body, size_t threads = 1);

  /// Moves the clock by `step` >= 0, from deadline to deadline, each when everything before it is done. Returns when everything
  /// that is due by then is done and all workers were idle. With kByItself the clock may be further by then, and moves on.
  /// Saturates 292 years after 0. Blocks the thread, without end if fibers never rest.
  void advance(std::chrono::nanoseconds step);

  /// Returns when all workers are idle and the clock has nowhere to go: no deadline is left, or none until where advance()
  /// allowed. Blocks the thread, with kByItself without end if there is a recurring timer.
  void awaitIdle();

  /// Stops the clock while an instance exists. It is for work that the clock cannot see: that of your own threads, or an answer
  /// of another process.
  class Hold {
   public:
    explicit Hold(VirtualTime& time);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const std::shared_ptr<detail::AutoAdvance> m_time;
  };

  detail::AutoAdvance* autoAdvance() const override;

 private:
  class Core;
  class Run;
  const std::shared_ptr<Core> m_core;
};

}  // namespace sylar
