// A user's program: the umbrella header, the well-known five lines, and a logger that has the name that everybody's has. It needs
// the hooks: without them the long sleep, which comes first, would hold up the others on the one thread. And a test of the
// user's, on virtual time. Trap 1, Trap 8.
#include <unistd.h>

#include "sylar/sylar.h"
#include "sylar/testing/virtual_time.h"

#if SYLAR_VERSION < 100
#error "the version of the installed headers"
#endif

sylar::Logger::ptr g_logger = SYLAR_LOG_NAME("consumer");

int main() {
  std::vector<int> order;
  {
    sylar::IOManager iom(1);
    iom.schedule([&] { usleep(100'000), order.push_back(3); });
    iom.schedule([&] { usleep(1'000), order.push_back(1); });
    iom.addTimer(20, [&] { order.push_back(2); });
    if (setuid(getuid()) != 0) return 1;  // by which libc calls each of its threads
  }
  SYLAR_LOG_INFO(g_logger) << "the order is " << order.at(0) << order.at(1) << order.at(2);
  sylar::VirtualTime time;
  time.run([] { sleep(24 * 3600); });
  return order.back() == 3 && time.elapsed() == std::chrono::hours(24) ? 0 : 1;
}
