// Timers that fire once, fire repeatedly, stop themselves, or are tied to the life of an object.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "sylar/iomanager.h"

int main() {
  sylar::IOManager iom(1, false, "timers");

  // [once]
  iom.addTimer(300, [] { std::puts("300 ms: once"); });

  // A callback runs in a fiber of its own, so it may sleep while the others go on.
  iom.addTimer(100, [] {
    usleep(50'000);
    std::puts("150 ms: a callback that has slept");
  });
  // [once]

  // [recurring]
  // This recurring timer stops itself. The IOManager waits for it, as for all armed timers.
  auto ticks = std::make_shared<int>(0);
  auto timer = std::make_shared<sylar::Timer::ptr>();
  *timer = iom.addTimer(
      200,
      [ticks, timer] {
        std::printf("%d ms: tick\n", ++*ticks * 200);
        if (*ticks == 3) (*timer)->cancel();
      },
      true);
  // [recurring]

  // [condition]
  // A condition timer runs its callback only if its object still exists.
  auto session = std::make_shared<int>(7);
  iom.addConditionTimer(
      250, [] { std::puts("250 ms: the session is alive"); }, session);
  auto ended = std::make_shared<int>(8);
  iom.addConditionTimer(
      250, [] { std::puts("never printed"); }, ended);
  ended.reset();
  // [condition]

  // [id]
  // This kind is cheaper, with a number instead of a handle. Its callback never overlaps with itself.
  int beats = 0;
  const sylar::TimerId beat = iom.startTimer(
      std::chrono::milliseconds(100), [&beats] { ++beats; }, sylar::Repeat::kSkip);
  iom.addTimer(450, [&] {
    iom.stopTimerSync(beat);  // after it returns, the callback is not running and will not run again
    std::printf("450 ms: %s beats\n", beats > 0 ? "some" : "no");
  });
  // [id]

  iom.stop();  // stops here, so that `session` outlives its timer
}
