// Virtual time for tests: a day of sleeps, timeouts and timers takes milliseconds, and gives the same result each time.
//
//   sylar::VirtualTime time;
//   time.run([] {
//     sleep(24 * 3600);  // whatever waits, waits on the virtual clock
//   });
//   EXPECT_EQ(time.elapsed(), 24h);
//
// Or with schedulers of one's own, and a clock that the test moves:
//
//   sylar::VirtualTime time(sylar::VirtualTime::kByHand);
//   sylar::IOManager iom({.threads = 2, .use_caller = false, .clock = &time});
//   iom.addTimer(60'000, [&] { ++fired; });
//   time.advance(59s);  // returns when all is done that is due until then
//   EXPECT_EQ(fired, 0);
//   time.advance(1s);
//   EXPECT_EQ(fired, 1);
//
// The clock moves only when every worker of every scheduler on it is at rest: no fiber is runnable, no work is queued, no
// descriptor that somebody waits for is ready, no function runs on a helper thread (looking up names is one), and no Hold exists.
// Then it goes to the next deadline at once. With one worker everything happens in one order, the same each time.
//
// On it are: the hooked sleeps, SO_RCVTIMEO and SO_SNDTIMEO, timeouts of poll and connect, timers of IOManager. Real stay
// time(2), clock_gettime(2) and std::chrono's clocks, max_wait, the deadline of stop(), and everything on plain threads.
//
// What it cannot see takes no time on it: other processes, threads of one's own (docs/design/testing.md). A fiber that waits for
// those with a timeout sees the timeout, unless a Hold keeps the clock. Between two calls from a plain thread a day may pass:
// make them under one Hold. TCP connections within the process are seen; what the kernel keeps back costs its real time.
//
// Thread safety: all calls from any thread, but run(), advance() and awaitRest() not from fibers, which would wait for themselves
// (checked).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "sylar/base/clock.h"

namespace sylar {

/// A clock that begins at 0 and never goes back. Any number of schedulers may run on it, at once and in turn.
class VirtualTime final : public Clock {
 public:
  enum Moves {
    kByItself,  ///< to the next deadline, whenever all are at rest
    kByHand,    ///< the same, but not beyond what advance() has allowed
  };

  /// Throws std::bad_alloc.
  explicit VirtualTime(Moves moves = kByItself);
  /// All schedulers on it have stopped (checked).
  ~VirtualTime() override;
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  int64_t nowNs() const override;
  /// Time since it was made.
  std::chrono::nanoseconds elapsed() const { return std::chrono::nanoseconds(nowNs()); }

  /// Runs `body` in a fiber of an IOManager of its own, with `threads` workers in [1, 1024], and returns when it has ended. What
  /// it has started and not waited for is cancelled then, and sees no later time. An exception of it comes out here. If all
  /// fibers wait and nothing that they wait for is armed, they would for ever: then all are cancelled, and a std::runtime_error
  /// says who waits for what. Others: those of IOManager. Not with kByHand (checked). Blocks the thread.
  void run(std::function<void()> body, size_t threads = 1);

  /// Moves the clock by `step` >= 0, from deadline to deadline, each when all that came before is done, and returns when all are
  /// at rest again. With kByItself the clock may be further by then, and moves on. Saturates 292 years after 0.
  /// Blocks the thread: for ever, if fibers never rest.
  void advance(std::chrono::nanoseconds step);

  /// Returns when all are at rest and the clock has nowhere to go: no deadline is left, or none until where advance() allowed.
  /// Blocks the thread; with kByItself for ever, if there is a recurring timer.
  void awaitRest();

  /// While one exists the clock stands still. For what it cannot see: work on a thread of one's own, an answer of another
  /// process.
  class Hold {
   public:
    explicit Hold(VirtualTime& time);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    VirtualTime& m_time;
  };

  AutoAdvance* autoAdvance() const override;

 private:
  class Core;
  const std::unique_ptr<Core> m_core;
};

}  // namespace sylar
