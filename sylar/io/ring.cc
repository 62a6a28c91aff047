#include "sylar/io/ring.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/base/tsan.h"
#include "sylar/check.h"
#include "sylar/fiber.h"
#include "sylar/sched/park.h"

namespace sylar::detail {
namespace {

constexpr unsigned kAtOnce = 256;
constexpr unsigned kCompletions = 1024;  // more of them the kernel keeps itself
constexpr unsigned kBackoffTurns = 1000;
constexpr std::chrono::milliseconds kPause{1};  // before a cancel is submitted again
constexpr unsigned kPerCall = 20;               // the kernel goes on with at least so many operations in one call
constexpr unsigned kKernelThreads = 256;        // of each of two kinds, for what takes one; the other operations wait for these

// Without DEFER_TASKRUN the kernel would interrupt the thread, whose blocking calls would fail with EINTR.
constexpr unsigned kFlags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                            IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL;

// True if the kernel sets its flag for hasMore() before it looks whether to notify. Elsewhere its OR has no order, so serve() asks
// once more.
#ifdef __x86_64__
constexpr bool kFlagIsInOrder = true;
#else
constexpr bool kFlagIsInOrder = false;
#endif

// The name of what no fiber waits for. The others are the addresses of operations.
constexpr uint64_t kNobody = 0;

}  // namespace

std::unique_ptr<Ring> Ring::make(int* error) {
  std::unique_ptr<Ring> ring(new (std::nothrow) Ring);
  if (ring == nullptr) return *error = ENOMEM, nullptr;
  io_uring_params params{};
  params.flags = kFlags;
  params.cq_entries = kCompletions;
  io_uring& made = ring->m_ring;
  int result = io_uring_queue_init_params(kAtOnce, &made, &params);
  ring->m_made = result >= 0;
  if (ring->m_made) {
    made.ring_fd = made.enter_ring_fd = result = sys::keepOwn(made.ring_fd);
    if (result >= 0) ring->m_notify_fd = UniqueFd(result = sys::eventFd());
    if (result >= 0) result = io_uring_register_eventfd(&made, ring->notifyFd());
    unsigned most[2] = {kKernelThreads,
                        kKernelThreads};  // for what the kernel knows to be of files when it begins, and for the rest
    if (result >= 0) result = io_uring_register_iowq_max_workers(&made, most);
  }
  if (result < 0) return *error = -result, nullptr;
  return ring;
}

Ring::~Ring() {
  for (Operation* one = m_first; one != nullptr; one = one->next) const ClockHold ended(std::move(one->virtual_time));
  if (!m_made) return;
  if (m_ring.ring_fd >= 0) sys::closeFd(m_ring.ring_fd);
  m_ring.ring_fd = -1;  // which liburing does not close
  io_uring_queue_exit(&m_ring);
}

long Ring::run(const io_uring_sqe& entry) {
  SYLAR_DCHECK(mayPark());
  const this_fiber::CancelShield shield;
  Operation operation;
  operation.virtual_time = ClockHold(waitClock());
  for (bool submitted = false;; submitted = true) {
    Wait wait(WaitsFor::kFile);
    operation.waker = wait.waker();
    const bool refused = !submitted && !submit(entry, operation);
    if (refused || operation.done) {
      wait.withdraw();
      break;
    }
    if (wait.park() == WakeReason::kReady) break;
    // The last phase of cancelling. The kernel still uses this stack, so wait on until the fiber is abandoned.
  }
  return operation.result;
}

/// Submits the operation. It may be done at once.
bool Ring::submit(const io_uring_sqe& entry, Operation& operation) {
  if (sys::inForkedChild()) return false;
  const tsan::Exempt of_this_thread;
  io_uring_sqe* const place = this->place();
  if (place == nullptr) return false;
  *place = entry;
  io_uring_sqe_set_data(place, &operation);
  append(operation);
  submitAll();
  if (io_uring_sq_ready(&m_ring) == 0) {
    takeDone(&operation);
    return true;
  }
  io_uring_prep_nop(place);  // goes with the next one
  io_uring_sqe_set_data64(place, kNobody);
  remove(operation);
  return false;
}

/// Returns room for an entry, or null.
io_uring_sqe* Ring::place() {
  if (io_uring_sqe* const place = io_uring_get_sqe(&m_ring)) return place;
  submitAll();
  return io_uring_get_sqe(&m_ring);
}

void Ring::submitAll() {
  while (io_uring_submit(&m_ring) == -EINTR) continue;
}

void Ring::append(Operation& operation) {
  const tsan::Exempt of_this_thread;
  operation.previous = nullptr;
  operation.next = m_first;
  if (m_first != nullptr) m_first->previous = &operation;
  m_first = &operation;
  ++m_count;
}

void Ring::remove(const Operation& operation) {
  const tsan::Exempt of_this_thread;
  --m_count;
  (operation.previous == nullptr ? m_first : operation.previous->next) = operation.next;
  if (operation.next != nullptr) operation.next->previous = operation.previous;
}

void Ring::serve() {
  if (m_backoff_turns > 0) --m_backoff_turns;
  if ((m_notifies && !hasBegun() && io_uring_sq_ready(&m_ring) == 0 && !hasMore()) || sys::inForkedChild()) return;
  letNotify(false);
  if (hasBegun()) {
    submitBegun();
  } else if (io_uring_sq_ready(&m_ring) > 0 || hasMore()) {
    (void)io_uring_submit_and_get_events(&m_ring);
  }
  if (takeDone(nullptr)) return;
  letNotify(true);
  // The kernel may leave its flag set though it has nothing, so there is a bound.
  bool asks = !kFlagIsInOrder || hasMore();
  for (unsigned left = m_count / kPerCall + 2; asks && left > 0; --left) {
    if (sys::inForkedChild() || io_uring_get_events(&m_ring) < 0 || takeDone(nullptr)) return;
    asks = hasMore();
  }
}

/// Sets whether the kernel notifies the worker. Of what has come before, hasMore() tells then.
void Ring::letNotify(bool notifies) {
  if (sys::inForkedChild()) return;
  m_notifies = notifies;
  (void)io_uring_cq_eventfd_toggle(&m_ring, notifies);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Returns true if there are completions, or the kernel may have something to do in this thread, or completions that had no place.
bool Ring::hasMore() const {
  if (io_uring_cq_ready(&m_ring) > 0) return true;
  return (__atomic_load_n(m_ring.sq.kflags, __ATOMIC_RELAXED) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

/// Wakes those of whom the kernel has told, but not the running fiber, of which `own` is. Returns true if it has woken any.
bool Ring::takeDone(const Operation* own) {
  if (sys::inForkedChild()) return false;  // a handler has forked, and the completions are the parent's
  unsigned head, count = 0;
  bool woken = false;
  io_uring_cqe* completion;
  io_uring_for_each_cqe(&m_ring, head, completion) {
    ++count;
    if (completion->user_data == kNobody) continue;
    auto* const operation = static_cast<Operation*>(io_uring_cqe_get_data(completion));
    remove(*operation);
    operation->result = completion->res;
    if (completion->flags != 0) lend(*operation, completion->flags);
    operation->done = true;
    if (operation != own) woken |= tell(*operation);
  }
  if (!sys::inForkedChild()) io_uring_cq_advance(&m_ring, count);
  return woken;
}

/// Gives `operation` the block that it has taken, if there is anything in it.
void Ring::lend(Operation& operation, uint32_t completion_flags) {
  const char* const block = m_memory != nullptr ? m_memory->block(completion_flags) : nullptr;
  if (block == nullptr) return;
  if (operation.result > 0) {
    operation.lent = block;
  } else {
    m_memory->giveBack(block);
  }
}

/// Wakes the fiber of `operation`, which is done. Returns false if something else has woken it.
bool Ring::tell(Operation& operation) {
  const ClockHold until_it_is_told(std::move(operation.virtual_time));
  const Waker waker = operation.waker;
  if (!waker.claim(WakeReason::kReady)) return false;
  Waker::deliver(*waker.core);
  return true;
}

void Ring::leave() {
  io_uring_sync_cancel_reg all{};
  all.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
  submitAll();
  (void)io_uring_register_sync_cancel(&m_ring, &all);  // with a timeout of 0, so it does not wait for what goes on
  serve();
  if (m_memory != nullptr && !busy()) m_memory->leave(m_ring);  // else the kernel may still write to it
}

// ---- Transfers. --------------------------------------------------------------------------------------------------------------

LentMemory* Ring::memory() {
  const tsan::Exempt of_this_thread;
  if (!m_memory_made) {
    m_memory = LentMemory::make(m_ring);
    m_memory_made = true;
  }
  return m_memory.get();
}

void Ring::begin(Transfer& transfer) {
  SYLAR_DCHECK(!sys::inForkedChild());
  const tsan::Exempt of_this_thread;
  io_uring_sqe_set_data(transfer.call, static_cast<Operation*>(&transfer));
  transfer.previous = std::exchange(m_last_begun, &transfer);
  (transfer.previous == nullptr ? m_first_begun : transfer.previous->next) = &transfer;
}

/// Submits the transfers that were begun, as many at once as there is room for.
void Ring::submitBegun() {
  while (hasBegun()) {
    Transfer* pinned = nullptr;  // the last one first
    while (m_first_begun != nullptr && io_uring_sq_space_left(&m_ring) > 0) {
      Transfer& transfer = static_cast<Transfer&>(*m_first_begun);
      removeBegun(transfer);
      if (!transfer.pin()) {
        giveUp(transfer, -ECANCELED);
        continue;
      }
      *io_uring_get_sqe(&m_ring) = *transfer.call;
      transfer.submitted = true;
      append(transfer);
      transfer.next_pinned = std::exchange(pinned, &transfer);
    }
    while (io_uring_submit_and_get_events(&m_ring) == -EINTR) continue;  // with what is done already
    if (sys::inForkedChild()) return;
    const unsigned refused = io_uring_sq_ready(&m_ring);
    takeBack(pinned, refused);
    for (; pinned != nullptr; pinned = pinned->next_pinned) pinned->unpin();
    if (refused > 0) return rest();
  }
}

/// Takes no transfers for kBackoffTurns turns, because the kernel refuses them. Their fibers make the calls themselves, and wait by
/// the epoll.
void Ring::rest() {
  m_backoff_turns = kBackoffTurns;
  while (hasBegun()) {
    Transfer& transfer = static_cast<Transfer&>(*m_first_begun);
    removeBegun(transfer);
    giveUp(transfer, -EAGAIN);
  }
}

void Ring::removeBegun(const Transfer& transfer) {
  const tsan::Exempt of_this_thread;
  (transfer.previous == nullptr ? m_first_begun : transfer.previous->next) = transfer.next;
  (transfer.next == nullptr ? m_last_begun : transfer.next->previous) = transfer.previous;
}

/// Makes the last `count` entries no-ops, because the kernel has refused them, and their numbers may be others' when it looks
/// again. `last` is the last transfer.
void Ring::takeBack(Transfer* last, unsigned count) {
  for (unsigned i = 1; i <= count && last != nullptr; ++i) {
    io_uring_sqe* const place = &m_ring.sq.sqes[(m_ring.sq.sqe_tail - i) & *m_ring.sq.kring_mask];
    if (place->user_data != last->call->user_data) continue;
    io_uring_prep_nop(place);
    io_uring_sqe_set_data64(place, kNobody);
    remove(*last);
    giveUp(*std::exchange(last, last->next_pinned), -EAGAIN);
  }
}

/// Ends what the kernel does not get.
void Ring::giveUp(Operation& operation, long error) {
  operation.result = error;
  operation.done = true;
  tell(operation);
}

/// The kernel is asked at once, because a cancelled fiber may have few waits left, and mostly it has an answer.
void Ring::end(Transfer& transfer) {
  if (transfer.done) return;
  if (!transfer.submitted) {
    removeBegun(transfer);
    transfer.result = -ECANCELED;
    return;
  }
  const this_fiber::CancelShield shield;
  bool placed = false;
  while (true) {
    bool asked;
    {
      const tsan::Exempt of_this_thread;
      placed = placed || askToCancel(transfer);
      (void)io_uring_submit_and_get_events(&m_ring);
      takeDone(&transfer);
      asked = placed && io_uring_sq_ready(&m_ring) == 0;
    }
    if (sys::inForkedChild() || transfer.done) return;
    const Deadline until = asked ? Deadline::never() : Deadline::after(kPause, waitClock());
    if (!until.isNever() && !reserveTimeout(until)) {
      Fiber::YieldToReady();
      continue;
    }
    Wait wait(WaitsFor::kEvent);
    transfer.waker = wait.waker();
    (void)wait.park(until);
    if (sys::inForkedChild() || transfer.done) return;
  }
}

/// Returns false if the kernel takes no more for now.
bool Ring::askToCancel(const Operation& operation) {
  io_uring_sqe* const place = this->place();
  if (place == nullptr) return false;
  io_uring_prep_cancel(place, const_cast<Operation*>(&operation), 0);
  io_uring_sqe_set_data64(place, kNobody);
  return true;
}

void Ring::abandon(const FiberCore& core) {
  for (Operation *one = m_first_begun, *next; one != nullptr; one = next) {
    next = one->next;
    if (one->waker.core == &core) removeBegun(static_cast<Transfer&>(*one));
  }
  for (const Operation* one = m_first; one != nullptr; one = one->next) {
    if (one->waker.core == &core) (void)askToCancel(*one);
  }
}

}  // namespace sylar::detail
