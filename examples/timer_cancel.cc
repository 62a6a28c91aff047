// A timer that ends from within: its callback counts, speeds it up, and cancels it. Its handle stands outside, as sylar's samples
// have it.
#include <cstdio>

#include "sylar/io/iomanager.h"

namespace {

sylar::Timer::ptr g_timer;
int g_ticks = 0;

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

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "timer");
  // The first tick is an hour away until the handle is in its place: a callback must find it there.
  g_timer = iom.addTimer(3'600'000, tick, true);
  g_timer->reset(100, true);
  iom.stop();  // returns when no timer is armed any more
  std::printf("%d ticks\n", g_ticks);
  return g_ticks == 6 ? 0 : 1;
}
