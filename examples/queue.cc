// A queue between fibers, and between fibers and plain threads. An eventfd counts its values. While the count is 0, a fiber that
// reads the eventfd is suspended, and a plain thread blocks.
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "sylar/iomanager.h"

namespace {

// [semaphore]
/// Lets `count` callers in at the same time; the others wait.
class Semaphore {
 public:
  explicit Semaphore(unsigned count) : m_fd(eventfd(count, EFD_SEMAPHORE | EFD_CLOEXEC)) {
    if (m_fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~Semaphore() { close(m_fd); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// Waits for a place. Returns false if the fiber was cancelled.
  bool wait() {
    eventfd_t one;
    return eventfd_read(m_fd, &one) == 0;
  }
  void notify() { eventfd_write(m_fd, 1); }

 private:
  const int m_fd;
};
// [semaphore]

// [queue]
template <class T>
class Queue {
 public:
  void push(T value) {
    {
      const std::lock_guard lock(m_mutex);  // held for a few instructions, never over a call that suspends
      m_values.push_back(std::move(value));
    }
    m_filled.notify();
  }

  /// Waits for a value. Returns nothing if the fiber was cancelled.
  std::optional<T> pop() {
    if (!m_filled.wait()) return std::nullopt;
    const std::lock_guard lock(m_mutex);
    std::optional<T> value(std::move(m_values.front()));
    m_values.pop_front();
    return value;
  }

 private:
  Semaphore m_filled{0};
  std::mutex m_mutex;
  std::deque<T> m_values;
};
// [queue]

}  // namespace

int main(int argc, char** argv) {
  const int each = argc > 1 ? std::atoi(argv[1]) : 1000;
  constexpr int kConsumers = 4;
  Queue<int> queue;
  std::atomic<int64_t> sum{0};
  {
    sylar::IOManager iom(2, false, "queue");
    for (int i = 0; i < kConsumers; ++i) {
      iom.schedule([&] {
        for (std::optional<int> value; (value = queue.pop()) && *value >= 0;) sum += *value;
      });
    }
    const auto produce = [&] {
      for (int i = 1; i <= each; ++i) queue.push(i);
    };
    const auto fiber = std::make_shared<sylar::Fiber>(produce);
    iom.schedule(fiber);
    std::thread thread(produce);  // a plain thread
    thread.join();
    fiber->join();
    for (int i = 0; i < kConsumers; ++i) queue.push(-1);  // ends a consumer
  }
  const int64_t expected = int64_t{each} * (each + 1);
  std::printf("sum: %lld, expected: %lld\n", static_cast<long long>(sum), static_cast<long long>(expected));
  return sum == expected ? 0 : 1;
}
