#include "sylar/testing/virtual_time.h"

#include <linux/sockios.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "sylar/base/check.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/io/fd_table.h"
#include "sylar/io/iomanager.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/park.h"

namespace sylar {
namespace {

/// Longer than a receiver may delay an acknowledgement.
constexpr int64_t kPatienceNs = 250'000'000;

/// True: a TCP socket of this process has taken bytes that it has not sent. They wait for an acknowledgement (Nagle), or for
/// room. What has been sent over loopback has arrived.
bool unsentBytes() {
  bool any = false;
  FdTable::forEach([&any](int fd, const Entry& entry) {
    if (any || entry.kind() != FdKind::kTcp) return;
    int bytes = 0;
    any = sys::call(SYS_ioctl, fd, SIOCOUTQNSD, &bytes) == 0 && bytes > 0;
  });
  return any;
}

}  // namespace

/// Whoever changes something that a decision depends on, makes it: who goes to rest or leaves, who ends a hold, who waits.
class VirtualTime::Core final : public AutoAdvance {
 public:
  explicit Core(bool by_hand) : m_by_hand(by_hand) {}
  ~Core() { SYLAR_CHECK(m_first == nullptr && m_holds == 0); }

  int64_t nowNs() const { return m_now_ns.load(std::memory_order_relaxed); }
  bool byHand() const { return m_by_hand; }

  void join(Member& member) override {
    Lock lock(m_mutex);
    if (std::exchange(member.is_member, true)) return;
    member.is_at_rest = false;
    member.next_member = std::exchange(m_first, &member);
  }

  void leave(Member& member) override {
    Lock lock(m_mutex);
    if (!std::exchange(member.is_member, false)) return;
    Member** link = &m_first;
    while (*link != &member) link = &(*link)->next_member;
    *link = member.next_member;
    decideAndTell();
  }

  int64_t rest(Member& member) override {
    Lock lock(m_mutex);
    member.is_at_rest = true;
    decideAndTell(&member);
    if (!member.is_at_rest) return 0;
    const int64_t left_ns = patienceNs();
    return left_ns > 0 ? left_ns : kNever;
  }

  void goOn(Member& member, bool something_came) override {
    Lock lock(m_mutex);
    member.is_at_rest = false;
    if (something_came) m_unsent_since_ns = kNever;
  }

  void hold() override {
    Lock lock(m_mutex);
    ++m_holds;
  }

  void release() override {
    Lock lock(m_mutex);
    --m_holds;
    decideAndTell();
  }

  /// Allows the clock to come as far as that, or makes it.
  int64_t aimAt(std::chrono::nanoseconds step) {
    Lock lock(m_mutex);
    m_target_ns = std::min(saturatingAdd(std::max(m_target_ns, nowNs()), step.count()), kNever - 1);
    return m_target_ns;
  }

  /// Blocks the thread until `over(is everything at rest, with nowhere to go)`.
  template <class Over>
  void await(Over over) {
    for (;;) {
      Lock lock(m_mutex);
      if (over(decide())) return;
      m_awaited = true;
      const uint32_t seen = m_decisions.load(std::memory_order_relaxed);
      lock.unlock();
      sys::futexWait(m_decisions, seen, kNever);
    }
  }

  /// Something that await() asks for may be true.
  void tell() {
    Lock lock(m_mutex);
    wakeAwaiting();
  }

 private:
  /// True: all are at rest, and the clock has nowhere to go. `caller` need not be woken to go on.
  bool decide(Member* caller = nullptr) SYLAR_REQUIRES(m_mutex) {
    if (m_holds > 0) return false;
    int64_t due_ns = kNever;
    for (const Member* member = m_first; member != nullptr; member = member->next_member) {
      if (!member->is_at_rest || !member->quiet()) return false;
      due_ns = std::min(due_ns, member->dueNs());
    }
    if (m_first != nullptr && waitsForKernel()) {
      if (caller == nullptr) m_first->wake();  // it looks again
      return false;
    }
    const int64_t limit_ns = m_by_hand ? std::max(m_target_ns, nowNs()) : kNever - 1;
    if (due_ns > limit_ns) {
      setNow(m_target_ns);
      return true;
    }
    setNow(due_ns);
    for (Member* member = m_first; member != nullptr; member = member->next_member) {
      if (member->dueNs() > due_ns) continue;
      if (member == caller) {
        member->is_at_rest = false;
      } else {
        member->wake();
      }
    }
    return false;
  }

  void setNow(int64_t ns) SYLAR_REQUIRES(m_mutex) {
    if (ns <= nowNs()) return;
    m_now_ns.store(ns, std::memory_order_relaxed);
    m_unsent_since_ns = kNever;
  }

  /// The kernel keeps bytes back, and may still send them without anybody's doing.
  bool waitsForKernel() SYLAR_REQUIRES(m_mutex) {
    if (!unsentBytes()) {
      m_unsent_since_ns = kNever;
      return false;
    }
    if (m_unsent_since_ns == kNever) m_unsent_since_ns = steadyClock().nowNs();
    return patienceNs() > 0;
  }

  /// How long the kernel may still take; 0 or less: it waits for others, or for nothing.
  int64_t patienceNs() const SYLAR_REQUIRES(m_mutex) {
    return m_unsent_since_ns == kNever ? 0 : m_unsent_since_ns + kPatienceNs - steadyClock().nowNs();
  }

  void decideAndTell(Member* caller = nullptr) SYLAR_REQUIRES(m_mutex) {
    decide(caller);
    wakeAwaiting();
  }

  void wakeAwaiting() SYLAR_REQUIRES(m_mutex) {
    if (!std::exchange(m_awaited, false)) return;
    m_decisions.fetch_add(1, std::memory_order_release);
    sys::futexWake(m_decisions, INT32_MAX);
  }

  const bool m_by_hand;
  OsMutex m_mutex;
  Member* m_first SYLAR_GUARDED_BY(m_mutex) = nullptr;
  size_t m_holds SYLAR_GUARDED_BY(m_mutex) = 0;
  int64_t m_target_ns SYLAR_GUARDED_BY(m_mutex) = 0;
  int64_t m_unsent_since_ns SYLAR_GUARDED_BY(m_mutex) = kNever;  // on the steady clock; nothing has happened since
  bool m_awaited SYLAR_GUARDED_BY(m_mutex) = false;
  std::atomic<uint32_t> m_decisions{0};  // await() sleeps on it
  std::atomic<int64_t> m_now_ns{0};      // written under the lock
};

VirtualTime::VirtualTime(Moves moves) : m_core(std::make_unique<Core>(moves == kByHand)) {}

VirtualTime::~VirtualTime() = default;

int64_t VirtualTime::nowNs() const { return m_core->nowNs(); }

AutoAdvance* VirtualTime::autoAdvance() const { return m_core.get(); }

void VirtualTime::advance(std::chrono::nanoseconds step) {
  SYLAR_CHECK(!mayPark());
  SYLAR_CHECK(step.count() >= 0);
  const int64_t target_ns = m_core->aimAt(step);
  m_core->await([this, target_ns](bool at_rest) { return nowNs() >= target_ns && (at_rest || !m_core->byHand()); });
}

void VirtualTime::awaitRest() {
  SYLAR_CHECK(!mayPark());
  m_core->await([](bool at_rest) { return at_rest; });
}

void VirtualTime::run(std::function<void()> body, size_t threads) {
  SYLAR_CHECK(!mayPark());
  SYLAR_CHECK(!m_core->byHand());
  std::atomic<bool> ended{false};
  std::exception_ptr exception;
  std::string waiting;
  {
    IOManager iom({.threads = threads, .use_caller = false, .name = "virtual", .clock = this});
    iom.schedule([&, body = std::move(body)] {
      try {
        body();
      } catch (...) {
        exception = std::current_exception();
      }
      m_core->hold();  // what is left sees no later time
      ended.store(true, std::memory_order_release);
      m_core->tell();
    });
    m_core->await([&](bool at_rest) { return at_rest || ended.load(std::memory_order_acquire); });
    const Hold to_its_end(*this);
    if (!ended.load(std::memory_order_acquire)) {
      std::ostringstream report;
      iom.dump(report);
      waiting = report.str();
    }
    iom.stop(Deadline::after(std::chrono::seconds(1)));
  }
  if (ended.load(std::memory_order_acquire)) m_core->release();
  if (!waiting.empty()) {
    throw std::runtime_error("sylar::VirtualTime: all fibers wait, and nothing that they wait for is armed; " + waiting);
  }
  if (exception != nullptr) std::rethrow_exception(exception);
}

VirtualTime::Hold::Hold(VirtualTime& time) : m_time(time) { m_time.m_core->hold(); }

VirtualTime::Hold::~Hold() { m_time.m_core->release(); }

}  // namespace sylar
