#include "sylar/testing/virtual_time.h"

#include <linux/sockios.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/io/fd_table.h"
#include "sylar/iomanager.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/park.h"

namespace sylar {
namespace {

/// How long run() waits, in real time, for what it has cancelled. A busy machine may keep a worker from running for seconds.
constexpr std::chrono::seconds kTimeToEnd(10);
/// A time longer than a receiver may delay an acknowledgement.
constexpr int64_t kPatienceNs = 250'000'000;

/// Returns true if a TCP socket of this process has taken bytes that it has not sent. They wait for an acknowledgement (Nagle),
/// or for room. Bytes that were sent over loopback have arrived.
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

/// Decides whether the clock moves. Each call that changes something that a decision depends on makes the decision: a member goes
/// to rest or leaves, a hold ends, a thread waits.
class VirtualTime::Core final : public AutoAdvance {
 public:
  explicit Core(bool by_hand) : m_by_hand(by_hand) {}
  ~Core() { SYLAR_CHECK(m_holds == 0); }
  void close() {
    Lock lock(m_mutex);
    SYLAR_CHECK(m_first == nullptr);
  }

  int64_t nowNs() const { return m_now_ns.load(std::memory_order_relaxed); }
  bool byHand() const { return m_by_hand; }

  void join(Member& member) override {
    Lock lock(m_mutex);
    if (std::exchange(member.is_member, true)) return;
    member.is_idle = member.looks_again = false;
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

  int64_t enterIdle(Member& member) override {
    Lock lock(m_mutex);
    member.is_idle = true;
    decideAndTell(&member);
    if (!member.is_idle) return 0;
    const int64_t left_ns = patienceNs();
    member.looks_again = left_ns > 0;
    return member.looks_again ? left_ns : kNever;
  }

  void leaveIdle(Member& member, bool something_came) override {
    Lock lock(m_mutex);
    member.is_idle = member.looks_again = false;
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

  /// Raises the time up to which the clock is allowed to come, or made to, by `step`, and returns it.
  int64_t aimAt(std::chrono::nanoseconds step) {
    Lock lock(m_mutex);
    m_done_before_ns.store(0, std::memory_order_relaxed);
    m_target_ns = std::min(saturatingAdd(std::max(m_target_ns, nowNs()), step.count()), kNever - 1);
    return m_target_ns;
  }

  /// Returns a time before which all that is due was done, with everything idle, since the last aimAt().
  int64_t doneBeforeNs() const { return m_done_before_ns.load(std::memory_order_relaxed); }

  /// Blocks the thread until `over(is_idle)` is true, where `is_idle` says that everything is idle and the clock has nowhere
  /// to go.
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

  /// Has await() look again, because its condition may be true.
  void tell() {
    Lock lock(m_mutex);
    wakeAwaiting();
  }

 private:
  /// Moves the clock if all are idle. Returns true if they are and the clock has nowhere to go. `caller` need not be woken to
  /// go on.
  bool decide(Member* caller = nullptr) SYLAR_REQUIRES(m_mutex) {
    if (m_holds > 0) return false;
    int64_t due_ns = kNever;
    bool looks_again = false;
    for (const Member* member = m_first; member != nullptr; member = member->next_member) {
      if (!member->is_idle || !member->isQuiescent()) return false;
      due_ns = std::min(due_ns, member->dueNs());
      looks_again = looks_again || member->looks_again;
    }
    if (m_first != nullptr && waitsForKernel()) {
      // Wakes it once only, because each wake restarts the patience. From then on it looks again by itself.
      if (caller == nullptr && !looks_again) m_first->wake();
      return false;
    }
    m_done_before_ns.store(due_ns, std::memory_order_relaxed);
    const int64_t limit_ns = m_by_hand ? std::max(m_target_ns, nowNs()) : kNever - 1;
    if (due_ns > limit_ns) {
      setNow(m_target_ns);
      return true;
    }
    setNow(due_ns);
    for (Member* member = m_first; member != nullptr; member = member->next_member) {
      if (member->dueNs() > due_ns) continue;
      if (member == caller) {
        member->is_idle = false;
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

  /// Returns true if the kernel keeps bytes back, and may still send them without anybody's doing.
  bool waitsForKernel() SYLAR_REQUIRES(m_mutex) {
    if (!unsentBytes()) {
      m_unsent_since_ns = kNever;
      return false;
    }
    if (m_unsent_since_ns == kNever) m_unsent_since_ns = steadyClock().nowNs();
    return patienceNs() > 0;
  }

  /// Returns how long the kernel may still take. At 0 or less it waits for others, or for nothing.
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
  std::atomic<int64_t> m_now_ns{0};      // written under the lock, as is the next
  std::atomic<int64_t> m_done_before_ns{0};
};

/// One call of run(). Its fiber shares the ownership, because it may be abandoned and end later.
class VirtualTime::Run {
 public:
  explicit Run(std::shared_ptr<Core> core) : m_core(std::move(core)) {}

  /// The last call that the fiber makes. It holds the clock, so that what is left sees no later time.
  void bodyEnded(std::exception_ptr exception) {
    m_exception = std::move(exception);
    m_core->hold();
    State runs = kRuns;
    if (!m_state.compare_exchange_strong(runs, kEnded, std::memory_order_acq_rel)) m_core->release();  // run() no longer waits
    m_core->tell();
  }
  bool ended() const { return m_state.load(std::memory_order_acquire) == kEnded; }

  /// The last call that run() makes. Returns what the body threw, or null.
  std::exception_ptr close() {
    if (m_state.exchange(kClosed, std::memory_order_acq_rel) != kEnded) return nullptr;
    m_core->release();
    return std::move(m_exception);
  }

 private:
  enum State : uint8_t { kRuns, kEnded, kClosed };
  const std::shared_ptr<Core> m_core;
  std::exception_ptr m_exception;  // the fiber's before kEnded, then run()'s
  std::atomic<State> m_state{kRuns};
};

VirtualTime::VirtualTime(Moves moves) : m_core(std::make_shared<Core>(moves == kByHand)) {}

VirtualTime::~VirtualTime() { m_core->close(); }

int64_t VirtualTime::nowNs() const { return m_core->nowNs(); }

AutoAdvance* VirtualTime::autoAdvance() const { return m_core.get(); }

void VirtualTime::advance(std::chrono::nanoseconds step) {
  SYLAR_CHECK(!mayPark());
  SYLAR_CHECK(step.count() >= 0);
  const int64_t target_ns = m_core->aimAt(step);
  m_core->await([this, target_ns](bool is_idle) { return is_idle || m_core->doneBeforeNs() > target_ns; });
}

void VirtualTime::awaitIdle() {
  SYLAR_CHECK(!mayPark());
  m_core->await([](bool is_idle) { return is_idle; });
}

void VirtualTime::run(std::function<void()> body, size_t threads) {
  SYLAR_CHECK(!mayPark());
  SYLAR_CHECK(!m_core->byHand());
  const auto run = std::make_shared<Run>(m_core);
  std::string error;
  StopResult stopped{};
  {
    IOManager iom({.threads = threads, .use_caller = false, .name = "virtual", .clock = this});
    iom.schedule([run, body = std::move(body)] {
      std::exception_ptr exception;
      try {
        body();
      } catch (...) {
        exception = std::current_exception();
      }
      run->bodyEnded(std::move(exception));
    });
    m_core->await([&run](bool is_idle) { return is_idle || run->ended(); });
    const Hold to_its_end(*this);
    if (!run->ended()) {
      std::ostringstream report;
      iom.dump(report);
      error = "all fibers wait, and nothing that they wait for is armed; " + report.str();
    }
    stopped = iom.stop(Deadline::after(kTimeToEnd));
  }
  const std::exception_ptr exception = run->close();
  if (error.empty() && exception != nullptr) std::rethrow_exception(exception);
  if (!stopped.clean) error += "these did not end within 10 seconds of real time, and are abandoned:\n";
  for (const FiberInfo& fiber : stopped.abandoned) {
    error += "    fiber " + std::to_string(fiber.id) + " " + fiber.name + ": " + fiber.waits_for + "\n";
  }
  if (!error.empty()) throw std::runtime_error("sylar::VirtualTime: " + error);
}

VirtualTime::Hold::Hold(VirtualTime& time) : m_time(time.m_core) { m_time->hold(); }

VirtualTime::Hold::~Hold() { m_time->release(); }

}  // namespace sylar
