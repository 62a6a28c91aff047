// How select() waits for a descriptor: as poll does, by one waiter in the entry of the number.
#include <poll.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/io/fd_table.h"
#include "sylar/sched/worker_slot.h"
#include "sylar/select.h"

namespace sylar::detail {

struct DescriptorCase::Watched {
  const int fd;
  const short events;
  const Direction direction;
  Entry* const entry;  // null if no such number can be open
  const uint32_t generation;
  uint64_t edges_seen = 0;
  Entry::Waiter waiter = {};
};

namespace {

EpollEngine* engineHere() {
  const FiberCore* const me = runningFiber();
  if (me == nullptr || me->home == nullptr || sys::inForkedChild()) return nullptr;
  return static_cast<EpollEngine*>(static_cast<WorkerSlot*>(me->home)->fd_driver.load(std::memory_order_acquire));
}

Entry* entryOf(int fd) {
  Entry* const entry = FdTable::at(fd);
  if (entry == nullptr && FdTable::covers(fd)) throw std::bad_alloc();
  return entry;
}

short eventsOf(DescriptorCase::Wants what) {
  switch (what) {
    case DescriptorCase::Wants::kReadable: return POLLIN | POLLRDHUP;
    case DescriptorCase::Wants::kWritable: return POLLOUT;
    case DescriptorCase::Wants::kHangUp: break;
  }
  return POLLRDHUP;
}

uint32_t generationOf(Entry* entry, int fd) { return entry == nullptr ? 0 : Entry::generationOf(entry->awaitOpen(fd)); }

}  // namespace

DescriptorCase::DescriptorCase(int fd, Wants what)
    : m_watched(new Watched{
          .fd = fd,
          .events = eventsOf(what),
          .direction = what == Wants::kWritable ? Direction::kWrite : Direction::kRead,
          .entry = entryOf(fd),
          .generation = generationOf(entryOf(fd), fd),
      }) {}

DescriptorCase::~DescriptorCase() = default;

const void* DescriptorCase::place() const { return m_watched->entry; }

/// Asks the kernel with the number pinned, because one that was closed since may be somebody else's.
bool DescriptorCase::tryNow() {
  Entry* const entry = m_watched->entry;
  if (entry == nullptr) return true;
  m_watched->edges_seen = entry->edges(m_watched->direction);
  if (!entry->pin(m_watched->generation)) return true;
  const bool ready = sys::pollNow(m_watched->fd, m_watched->events) != 0;
  entry->unpin();
  return ready;
}

bool DescriptorCase::enqueue(SyncWait& wait) {
  EpollEngine* const engine = engineHere();
  if (engine == nullptr) throw std::logic_error("sylar::select: only a fiber of an IOManager can wait for a descriptor");
  SYLAR_DCHECK(m_watched->entry != nullptr && !m_watched->waiter.linked);
  Entry::Waiter& waiter = m_watched->waiter;
  waiter = {};
  waiter.waker = {wait.core(), wait.epoch()};
  waiter.engine = engine;
  waiter.events = static_cast<uint32_t>(m_watched->events) | EPOLLERR | EPOLLHUP;
  const bool ask_kernel = !m_watched->entry->isPrivate();
  const int error = m_watched->entry->enqueue(m_watched->fd, m_watched->generation, m_watched->direction, m_watched->edges_seen,
                                              ask_kernel, waiter);
  switch (-error) {
    case 0: return true;
    case EAGAIN:
    case EBADF: return false;
    case ENOMEM: throw std::bad_alloc();
    default: throw std::system_error(-error, std::generic_category(), "sylar::select");
  }
}

void DescriptorCase::dequeue() {
  SYLAR_DCHECK(m_watched->entry != nullptr);
  m_watched->entry->dequeue(m_watched->direction, m_watched->waiter);
}

}  // namespace sylar::detail
