// A timer whose callback counts its ticks, speeds the timer up, and cancels it. The handle is a global variable, as in sylar's
// samples.
#include <cstdio>

#include "sylar/iomanager.h"

namespace {

sylar::Timer::ptr g_timer;
int g_ticks = 0;

// [tick]
void tick() {
  std::printf("tick %d\n", ++g_ticks);
  if (g_ticks == 3) {
    std::printf("from here on faster: %s\n", g_timer->reset(20, true) ? "yes" : "no");
  }
  if (g_ticks == 6) {
    std::printf("cancelled: %s\n", g_timer->cancel() ? "yes" : "no");
    std::printf("cancelled again: %s\n", g_timer->cancel() ? "yes" : "no");
  }
}
// [tick]

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "timer");
  // [start]
  // The first tick is an hour away until g_timer is set, because the callback uses g_timer.
  g_timer = iom.addTimer(3'600'000, tick, true);
  g_timer->reset(100, true);
  // [start]
  iom.stop();  // returns when no timer is armed any more
  std::printf("%d ticks\n", g_ticks);
  return g_ticks == 6 ? 0 : 1;
}
