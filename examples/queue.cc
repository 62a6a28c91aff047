// Values that go from fibers and plain threads to others.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sylar/iomanager.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/task_group.h"

namespace {

// [channel]
/// Sums up what a fiber of `iom` and the calling thread send.
int64_t sumOf(sylar::IOManager& iom, int each) {
  sylar::Channel<int> channel(16);  // holds 16 values; a fiber or a thread that sends more waits
  const auto produce = [&] {
    for (int i = 1; i <= each; ++i) channel.send(i);
  };
  std::atomic<int64_t> sum{0};
  sylar::TaskGroup consumers(4, &iom), producers(1, &iom);
  for (int i = 0; i < 4; ++i) {
    consumers.spawn([&] {
      for (const int value : channel) sum += value;  // until the channel is closed and empty
    });
  }
  producers.spawn(produce);
  produce();
  producers.join();
  channel.close();
  consumers.join();
  return sum;
}
// [channel]

}  // namespace

int main(int argc, char** argv) {
  const int each = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int64_t expected = int64_t{each} * (each + 1);
  sylar::IOManager iom(1, false, "queue");
  const int64_t sum = sumOf(iom, each);
  std::printf("sum: %lld, expected: %lld\n", static_cast<long long>(sum), static_cast<long long>(expected));
  return sum == expected ? 0 : 1;
}
