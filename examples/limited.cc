// A limit to how many fibers do something at the same time.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/future.h"
#include "sylar/sync/task_group.h"

namespace {

// [semaphore]
/// Does 50 things, three at a time. Returns how many were done at the same time.
int limited() {
  sylar::Semaphore slots(3);
  std::atomic<int> running{0}, most{0};
  sylar::TaskGroup group;
  for (int i = 0; i < 50; ++i) {
    group.spawn([&] {
      if (!slots.wait()) return;  // the fiber was cancelled
      most = std::max(most.load(), ++running);
      usleep(1'000);
      --running;
      slots.notify();
    });
  }
  group.join();
  return most;
}
// [semaphore]

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "limited");
  const int most = sylar::go(limited, &iom).get();
  std::printf("at the same time: %d\n", most);
  return most == 3 ? 0 : 1;
}
