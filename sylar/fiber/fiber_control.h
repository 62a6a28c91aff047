// Internal. The part of a fiber that its users do not see: its state, its end observers, and the requests of other threads.
//
// It lies in memory that threads with fibers keep for the next one (control_memory.h), and ends with its Fiber. It is also the node
// by which the fiber is linked into a worker's queue.
//
// Thread safety: the fiber's own thread changes it. Any thread may call state(), tryMove(), observeEnd(), unobserveEnd() and
// cancelRequested().
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/fiber.h"
#include "sylar/fiber/end_observers.h"
#include "sylar/fiber/fiber_requests.h"
#include "sylar/fiber/queue_node.h"

namespace sylar::detail {

class MigrationTarget;
struct FiberCore;
class FiberHome;
struct StartedState;
class ThreadFibers;

/// The state of a fiber in detail. Fiber::State is the view of it that users get.
enum class FiberState : uint8_t {
  kInit,        ///< has never run
  kRefused,     ///< has never run; its scheduler refused it, so joiners have nothing to wait for
  kQueued,      ///< is in a scheduler's queue, which owns it
  kRunning,     ///< has the thread
  kResuming,    ///< has resumed another fiber, which has not come back yet
  kReady,       ///< has yielded to the caller of resume(), and wants to run
  kHeldByHand,  ///< has yielded to the caller of resume(), and waits to be resumed or scheduled
  kHeld,        ///< belongs to a scheduler, and waits to be scheduled
  kParked,      ///< waits for its wait word to be claimed
  kEnded,
  kFailed,     ///< has ended by an exception
  kAbandoned,  ///< is suspended permanently
};
inline bool isOver(FiberState state) { return state >= FiberState::kEnded; }
inline bool isUnstarted(FiberState state) { return state <= FiberState::kRefused; }
/// Returns the state in words, such as "parked".
const char* nameOf(FiberState state);

/// The kind of event that a parked fiber waits for, for reports. Those from kMutex on are at objects of sylar/sync: kMutex plus a
/// detail::SyncKind.
enum class WaitsFor : uint8_t { kEvent, kTime, kRead, kWrite, kPoll, kFiber, kHelper, kFile, kMutex, kRWMutex };

/// A message that makes the fiber's worker handle what the fiber was asked (FiberControl::Requested). It goes through the
/// worker's mailbox, and keeps the fiber alive until it is opened.
class FiberRequest final : public QueueNode {
 public:
  /// Asks for memory only if the fiber's own message is in flight, because signal handlers send requests too. Returns null if there
  /// is none; the one in flight delivers this request as well.
  static FiberRequest* make(Fiber::ptr fiber) noexcept;
  /// Ends a request that has arrived, and returns its fiber.
  static Fiber::ptr open(QueueNode* request);

 private:
  friend FiberControl;
  explicit FiberRequest(bool is_own) : QueueNode(Kind::kMessage), m_is_own(is_own) {}

  const bool m_is_own;
  Fiber::ptr m_fiber;
};

class FiberControl final : public SpawnNode {
 public:
  FiberControl(Fiber& fiber, uint64_t id, std::function<void()>&& cb, size_t stack_size, FiberState state)
      : m_fiber(fiber), m_id(id), m_state(state), m_cb(std::move(cb)), m_stack_size(static_cast<uint32_t>(stack_size)) {
    SYLAR_DCHECK(m_stack_size == stack_size);
  }
  ~FiberControl() { delete m_extras.load(std::memory_order_relaxed); }
  FiberControl(const FiberControl&) = delete;
  FiberControl& operator=(const FiberControl&) = delete;

  /// The memory comes from, and goes to, what the calling thread keeps.
  static void* operator new(size_t size);
  static void operator delete(void* memory);

  static FiberControl& of(const Fiber& fiber) { return *fiber.m_control; }
  /// Returns the fiber that this object belongs to.
  Fiber& fiber() const { return m_fiber; }
  /// Returns a new handle that stands for a thread's own stack.
  static Fiber::ptr ownStack();
  /// Returns the fiber that is queued as `node`.
  static Fiber& fiberOf(QueueNode* node) {
    SYLAR_DCHECK(node != nullptr && node->kind == Kind::kFiber);
    return static_cast<FiberControl*>(node)->fiber();
  }

  FiberState state() const { return m_state.load(std::memory_order_acquire); }
  /// Changes the state from `from` to `to`. Any other present state is a bug of the library.
  void move(FiberState from, FiberState to) {
    const FiberState was = m_state.load(std::memory_order_relaxed);
    SYLAR_CHECK_EQ(was, from);
    m_state.store(to, std::memory_order_release);
  }
  /// Sets the state, whatever it was. For the fiber's owner, while the fiber is in a queue or suspended.
  void move(FiberState to) {
    SYLAR_DCHECK(!isOver(state()));
    m_state.store(to, std::memory_order_release);
  }
  /// Changes the state from `from` to `to` where several threads may compete for that. Returns false if another thread was
  /// faster.
  [[nodiscard]] bool tryMove(FiberState from, FiberState to) {
    return m_state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  /// Has `observer` notified of the fiber's end. Returns false if the end has come already, or will not come because nobody runs
  /// the fiber.
  [[nodiscard]] bool observeEnd(EndObserver& observer);
  /// On return the observer will not be called and no call to it is in progress.
  void unobserveEnd(EndObserver& observer) { m_ends.remove(observer); }

  /// The requests that other threads may make to a fiber.
  enum Requested : uint8_t { kPermit = 1, kCancel = 2, kScopeFired = 4, kThread = 8 };
  /// Returns true if a CancelScope of the fiber that runs on `core`, or of one of its resumers, has been told to stop. A shield of
  /// a resumer hides its scopes and those beyond. For its own thread.
  static bool inFiredScope(const FiberCore& core);
  /// Returns null before the fiber's start and after its end.
  FiberCore* core() const;
  void setIdentity(FiberIdentity identity) { m_runs_as_worker = identity == FiberIdentity::kWorker; }
  bool runsAsWorker() const { return m_runs_as_worker; }
  /// Notes that there is no thread for it, while it waits for one.
  void refuseThread();
  bool threadRefused() const { return m_exception != nullptr; }
  size_t stackSize() const { return m_stack_size; }
  /// Runs the fiber's function, on its stack.
  void run();
  /// From the fiber's start to its end.
  StartedState& started() const {
    SYLAR_DCHECK(m_started != nullptr);
    return *m_started;
  }
  /// Ends the values of FiberLocal, and lets go of the tokens of its scopes, because its stack is reclaimed and the destructors
  /// there will not run.
  void dropStarted();
  /// Returns true if the fiber was cancelled and its thread has not looked yet. On plain threads only this_fiber::cancelled()
  /// looks.
  bool cancelRequested() const { return (m_requests.pending() & kCancel) != 0; }

  /// Notes what the fiber is about to wait for. `where` is the number of the descriptor, or the address of an object; kept are the
  /// lower 56 bits.
  void noteWait(WaitsFor what, uint64_t where) {
    m_waits_for.store(static_cast<uint64_t>(what) << kWhereBits | (where & kWhereMask), std::memory_order_relaxed);
  }
  /// Adds that the wait ends by itself, because it has a deadline.
  void noteDeadline() {
    m_waits_for.store(m_waits_for.load(std::memory_order_relaxed) | kHasDeadline, std::memory_order_relaxed);
  }
  struct Wants {
    WaitsFor what;
    uint64_t where;
    bool has_deadline;
  };
  /// Returns what noteWait() has noted last.
  Wants wants() const {
    const uint64_t noted = m_waits_for.load(std::memory_order_relaxed);
    return {static_cast<WaitsFor>((noted & ~kHasDeadline) >> kWhereBits), noted & kWhereMask, (noted & kHasDeadline) != 0};
  }
  /// Returns what the fiber is doing, in words, such as "reads descriptor 7".
  std::string describe() const;
  /// Returns one of the locks that it holds, in words to be appended, or "" if there are none. The fiber must not end during the
  /// call.
  std::string describeHeld() const;
  /// Ends the process, because the fiber comes to an end, as `how` says, and holds a lock.
  [[noreturn]] void failHolding(const char* how) const;

 private:
  friend Fiber;
  friend FiberRequest;
  friend ThreadFibers;

  static constexpr unsigned kWhereBits = 56;
  static constexpr uint64_t kWhereMask = (uint64_t{1} << kWhereBits) - 1;
  static constexpr uint64_t kHasDeadline = uint64_t{1} << 63;

  // The implementations of Fiber's functions of these names, and of what its constructor does.
  static FiberControl* make(Fiber& fiber, std::function<void()>&& cb, size_t stack_size);
  void reset(std::function<void()> cb);
  void resume();
  void join();
  void setName(std::string name);
  std::string name() const;
  std::string takeName() noexcept;
  size_t copyName(char* out, size_t size) const noexcept;
  static void setExceptionHandler(Fiber::ExceptionHandler handler);

  /// The properties that few fibers have. Made when first needed, and kept.
  struct Extras {
    Spinlock lock;
    std::string name SYLAR_GUARDED_BY(lock);
    std::shared_ptr<MigrationTarget> migration_target SYLAR_GUARDED_BY(lock);
  };
  Extras& extras();
  /// Returns null if there are none.
  Extras* ifExtras() const { return m_extras.load(std::memory_order_acquire); }

  static void endLocals(StartedState& mine);
  void end(FiberState how);  // when nothing will run on its stack any more
  void endUnfinished(FiberState how);
  void blockUntilEnd();
  void reportException(const std::string& told_name);  // to the handler
  void throwException();                               // unless a join has done so before
  bool mayResume(FiberState state) const;
  bool wantsToMigrate() const;

  Fiber& m_fiber;
  const uint64_t m_id;
  FiberRequest m_own_request{true};
  // The control block of an idle fiber must be small, so the members behind m_requests and m_ends lie in the padding of those.
  [[no_unique_address]] FiberRequests<FiberHome> m_requests;
  std::atomic<FiberState> m_state;
  std::atomic<bool> m_own_is_away{false};
  Spinlock m_lock;                    // of m_exception, for those who join
  std::atomic<pid_t> m_thread_id{0};  // where it was started
  std::atomic<uint64_t> m_waits_for{0};
  StartedState* m_started = nullptr;  // from start to end
  Fiber::ptr m_self;                  // set while a scheduler owns it
  std::function<void()> m_cb;
  std::exception_ptr m_exception;
  [[no_unique_address]] EndObservers<> m_ends;
  const uint32_t m_stack_size : 31;
  uint32_t m_runs_as_worker : 1 = 0;  // it borrows no thread
  std::atomic<Extras*> m_extras{nullptr};
};

inline FiberControl& control(Fiber& fiber) { return FiberControl::of(fiber); }
inline const FiberControl& control(const Fiber& fiber) { return FiberControl::of(fiber); }
inline FiberState stateOf(const Fiber& fiber) { return control(fiber).state(); }

}  // namespace sylar::detail
