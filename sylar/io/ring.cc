#include "sylar/io/ring.h"

#include <cerrno>
#include <new>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/sched/auto_advance.h"
#include "sylar/sched/park.h"

namespace sylar::detail {
namespace {

constexpr unsigned kSubmissions = 4;      // each is handed over at once
constexpr unsigned kCompletions = 1024;   // more of them the kernel keeps itself
constexpr unsigned kKernelThreads = 256;  // of each of two kinds, for what takes one; the other operations wait for these

// Without DEFER_TASKRUN the kernel would interrupt the thread, whose blocking calls would fail with EINTR.
constexpr unsigned kFlags =
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CQSIZE;

}  // namespace

struct Ring::Operation {
  Waker waker = {};
  ClockHold virtual_time = {};  // held until the fiber has been told; a fiber that was abandoned never unwinds
  long result = kRefused;
  bool done = false;
  Operation* previous = nullptr;
  Operation* next = nullptr;
};

std::unique_ptr<Ring> Ring::make(int wake_fd, int* error) {
  std::unique_ptr<Ring> ring(new (std::nothrow) Ring);
  if (ring == nullptr) return *error = ENOMEM, nullptr;
  io_uring_params params{};
  params.flags = kFlags;
  params.cq_entries = kCompletions;
  io_uring& made = ring->m_ring;
  int result = io_uring_queue_init_params(kSubmissions, &made, &params);
  ring->m_made = result >= 0;
  if (ring->m_made) {
    made.ring_fd = made.enter_ring_fd = result = sys::keepOwn(made.ring_fd);
    if (result >= 0) result = io_uring_register_eventfd(&made, wake_fd);
    unsigned most[2] = {kKernelThreads,
                        kKernelThreads};  // for what the kernel knows to be of files when it begins, and for the rest
    if (result >= 0) result = io_uring_register_iowq_max_workers(&made, most);
  }
  if (result >= 0) return ring;
  *error = -result;
  return nullptr;
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

/// Hands the operation over. It may be done at once.
bool Ring::submit(const io_uring_sqe& entry, Operation& operation) {
  if (sys::inForkedChild()) return false;
  io_uring_sqe* place = io_uring_get_sqe(&m_ring);
  if (place == nullptr) {  // those before were refused, and are still here
    handOver();
    place = io_uring_get_sqe(&m_ring);
  }
  if (place == nullptr) return false;
  *place = entry;
  io_uring_sqe_set_data(place, &operation);
  operation.next = m_first;
  if (m_first != nullptr) m_first->previous = &operation;
  m_first = &operation;
  handOver();
  if (io_uring_sq_ready(&m_ring) == 0) {
    takeDone(&operation);
    return true;
  }
  io_uring_prep_nop(place);  // goes with the next one
  io_uring_sqe_set_data(place, nullptr);
  remove(operation);
  return false;
}

void Ring::handOver() {
  while (io_uring_submit(&m_ring) == -EINTR) continue;
}

void Ring::remove(const Operation& operation) {
  (operation.previous == nullptr ? m_first : operation.previous->next) = operation.next;
  if (operation.next != nullptr) operation.next->previous = operation.previous;
}

void Ring::reap() {
  constexpr unsigned kMore = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW;
  do {
    if (io_uring_get_events(&m_ring) < 0) return;
    takeDone(nullptr);
  } while ((__atomic_load_n(m_ring.sq.kflags, __ATOMIC_RELAXED) & kMore) != 0);
}

/// Wakes those of whom the kernel has told, but not the running fiber, of which `own` is.
void Ring::takeDone(const Operation* own) {
  unsigned head, count = 0;
  io_uring_cqe* completion;
  io_uring_for_each_cqe(&m_ring, head, completion) {
    ++count;
    auto* const operation = static_cast<Operation*>(io_uring_cqe_get_data(completion));
    if (operation == nullptr) continue;
    remove(*operation);
    operation->result = completion->res;
    operation->done = true;
    const ClockHold until_it_is_told(std::move(operation->virtual_time));
    const Waker waker = operation->waker;
    if (operation != own && waker.claim(WakeReason::kReady)) Waker::deliver(*waker.core);
  }
  io_uring_cq_advance(&m_ring, count);
}

}  // namespace sylar::detail
