#include "sylar/sched/driver.h"

#include "sylar/base/sys.h"
#include "sylar/check.h"

namespace sylar::detail {
namespace {

class SleepDriver final : public Driver {
 public:
  explicit SleepDriver(WorkerSlot& slot) : Driver(false), m_slot(slot) {}

  bool serve(int64_t /*now_ns*/) override { return false; }

  bool poll(int64_t now_ns, int64_t deadline_ns) override {
    SYLAR_DCHECK(m_slot.wake_fd >= 0);
    if (deadline_ns <= now_ns) return false;  // there is nothing to collect
    sys::waitReadable(m_slot.wake_fd, now_ns, deadline_ns);
    uint64_t count;
    return sys::readFd(m_slot.wake_fd, &count, sizeof count) > 0;
  }

  int fd() const override { return m_slot.wake_fd; }

 private:
  WorkerSlot& m_slot;
};

}  // namespace

std::unique_ptr<Driver> makeSleepDriver(WorkerSlot& slot) { return std::make_unique<SleepDriver>(slot); }

}  // namespace sylar::detail
