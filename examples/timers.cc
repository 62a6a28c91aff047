// Timers: once, again and again, stopped from within, and tied to the life of an object.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "sylar/io/iomanager.h"

int main() {
  sylar::IOManager iom(1, false, "timers");

  iom.addTimer(300, [] { std::puts("300 ms: once"); });

  // A callback is a fiber: it may sleep, and the others go on meanwhile.
  iom.addTimer(100, [] {
    usleep(50'000);
    std::puts("150 ms: a callback that has slept");
  });

  // A recurring timer that stops itself. The IOManager waits for it, as for all armed timers.
  auto ticks = std::make_shared<int>(0);
  auto timer = std::make_shared<sylar::Timer::ptr>();
  *timer = iom.addTimer(
      200,
      [ticks, timer] {
        std::printf("%d ms: tick\n", ++*ticks * 200);
        if (*ticks == 3) (*timer)->cancel();
      },
      true);

  // Runs only if its object is still there.
  auto session = std::make_shared<int>(7);
  iom.addConditionTimer(
      250, [] { std::puts("250 ms: the session is alive"); }, session);
  auto ended = std::make_shared<int>(8);
  iom.addConditionTimer(
      250, [] { std::puts("never printed"); }, ended);
  ended.reset();

  iom.stop();  // here, so that `session` outlives its timer
}
