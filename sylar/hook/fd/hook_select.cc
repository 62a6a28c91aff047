// select and pselect. The kernel looks at the sets without waiting, and overwrites them, so they are copied first. Source:
// select(2).
#include <sys/select.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/fd/descriptor_wait.h"

namespace sylar::detail {
namespace {

/// The three sets of a call, and what they were at its beginning. `count` may be higher than the numbers that the process can have.
/// The kernel passes over those, and neither reads nor writes their part of the sets, which need not be memory of the caller's.
class Sets {
 public:
  Sets(int count, fd_set* read, fd_set* write, fd_set* except)
      : m_count(std::min(count, kMost)), m_words(wordsOf(m_count)), m_stride(m_words), m_sets{read, write, except} {}

  /// Copies as much of the sets as can be read. Returns false if there is no memory.
  bool copy() {
    if (3 * m_stride > m_few.size()) {
      m_many.reset(new (std::nothrow) uint64_t[3 * m_stride]);
      if (m_many == nullptr) return false;
      m_copies = m_many.get();
    }
    for (size_t set = 0; set < 3; ++set) {
      std::fill_n(copyOf(set), m_stride, 0);
      if (m_sets[set] != nullptr) copyReadable(copyOf(set), m_sets[set], m_words * sizeof *m_copies);
    }
    return true;
  }

  /// Leaves out, after a look that found nothing, what the kernel did not look at. It has cleared all that it did.
  void keepCleared() {
    SYLAR_DCHECK(m_words <= m_stride);
    size_t words = 0;
    for (size_t set = 0; set < 3; ++set) {
      for (size_t i = words; m_sets[set] != nullptr && i < m_words; ++i) {
        if (copyOf(set)[i] != 0 && present(set, i) == 0) words = i + 1;
      }
    }
    m_words = words;
    m_count = std::min(m_count, static_cast<int>(words * kBits));
  }

  /// Returns one more than the highest number that the kernel is to look at.
  int count() const { return m_count; }

  /// Makes the user's sets what they were, as far as the kernel has cleared them.
  void restore() const {
    for (size_t set = 0; set < 3; ++set) {
      if (m_sets[set] != nullptr) std::memcpy(m_sets[set], m_copies + set * m_stride, m_words * sizeof *m_copies);
    }
  }

  size_t size() const {
    size_t size = 0;
    for (size_t i = 0; i < m_words; ++i) size += static_cast<size_t>(std::popcount(anyOf(i)));
    return size;
  }
  /// Writes what is to be watched, size() descriptors.
  void list(pollfd* fds) const {
    constexpr short kEvents[3] = {POLLIN | POLLRDNORM | POLLRDBAND, POLLOUT | POLLWRNORM | POLLWRBAND, POLLPRI};
    for (size_t i = 0; i < m_words; ++i) {
      for (uint64_t any = anyOf(i); any != 0; any &= any - 1) {
        const int bit = std::countr_zero(any);
        *fds = {static_cast<int>(i * kBits) + bit, 0, 0};
        for (size_t set = 0; set < 3; ++set) {
          if ((bits(set, i) >> bit & 1) != 0) fds->events = static_cast<short>(fds->events | kEvents[set]);
        }
        ++fds;
      }
    }
  }

  /// Looks as the kernel's select does in a wait that has begun: a number that is closed meanwhile is in each set that asks for it.
  /// `fds` are those of list(). Returns how many there are in all, or -errno.
  int lookAtEach(pollfd* fds, size_t count) const {
    constexpr short kTold[3] = {POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR | POLLNVAL,
                                POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR | POLLNVAL, POLLPRI | POLLNVAL};
    const long ready = attempt::keepingErrno([=] { return real::poll(fds, count, 0); });
    if (ready < 0) return static_cast<int>(ready);
    int told = 0;
    for (size_t set = 0; set < 3; ++set) {
      if (m_sets[set] == nullptr) continue;
      std::memset(m_sets[set], 0, m_words * sizeof *m_copies);
      for (size_t i = 0; i < count; ++i) {
        const auto number = static_cast<size_t>(fds[i].fd);
        const uint64_t bit = uint64_t{1} << number % kBits;
        if ((bits(set, number / kBits) & bit) == 0 || (fds[i].revents & kTold[set]) == 0) continue;
        reinterpret_cast<uint64_t*>(m_sets[set])[number / kBits] |= bit;
        ++told;
      }
    }
    return told;
  }

 private:
  static constexpr size_t kBits = 64;
  static constexpr int kMost = 1 << 20;  // the kernel's own limit of numbers

  static size_t wordsOf(int count) { return (static_cast<size_t>(count) + kBits - 1) / kBits; }
  /// Copies up to the first page that cannot be read.
  static void copyReadable(uint64_t* to, const void* from, size_t size) {
    constexpr size_t kPage = 4096;
    if (size == 0 || probe::copyIn(to, from, size)) return;
    for (size_t done = 0; done < size;) {
      const auto* const at = static_cast<const char*>(from) + done;
      const size_t part = std::min(size - done, kPage - reinterpret_cast<uintptr_t>(at) % kPage);
      if (!probe::copyIn(reinterpret_cast<char*>(to) + done, at, part)) return;
      done += part;
    }
  }

  uint64_t* copyOf(size_t set) { return m_copies + set * m_stride; }
  /// Reads what the kernel has read as well, whatever the program thinks of it.
  [[gnu::no_sanitize_address]] uint64_t present(size_t set, size_t word) const {
    uint64_t value;
    std::memcpy(&value, reinterpret_cast<const char*>(m_sets[set]) + word * sizeof value, sizeof value);
    return value;
  }
  /// Returns what is asked for.
  uint64_t bits(size_t set, size_t word) const {
    SYLAR_DCHECK(set < 3 && word < m_words);
    uint64_t value = m_copies[set * m_stride + word];
    if (word + 1 == m_words && static_cast<size_t>(m_count) % kBits != 0) value &= (uint64_t{1} << m_count % kBits) - 1;
    return value;
  }
  uint64_t anyOf(size_t word) const { return bits(0, word) | bits(1, word) | bits(2, word); }

  int m_count;
  size_t m_words;
  const size_t m_stride;  // words of a copy
  fd_set* const m_sets[3];
  std::array<uint64_t, 3 * FD_SETSIZE / kBits> m_few;
  std::unique_ptr<uint64_t[]> m_many;
  uint64_t* m_copies = m_few.data();
};

/// Waits until one of the sets has something. Returns what select does.
int selectInFiber(EpollEngine& engine, int count, fd_set* read, fd_set* write, fd_set* except, int64_t timeout_ns,
                  const sigset_t* mask) {
  constexpr timespec kNoTime{};
  engine.chargeCall();
  yieldIfBudgetIsSpent(engine);
  Sets sets(count, read, write, except);
  if (!sets.copy()) return static_cast<int>(IoCall::result(-ENOMEM));
  const auto look = [=](int most, const sigset_t* mask_of_look) {
    const auto now = [=] {
      return static_cast<int>(
          attempt::keepingErrno([=] { return real::pselect(most, read, write, except, &kNoTime, mask_of_look); }));
    };
    if (mask_of_look != nullptr) return Interruptible::lettingSignalsThrough(now);
    int ready;
    do {
      ready = now();
    } while (ready == -EINTR);  // whether a handler ends the call is Interruptible's affair
    return ready;
  };
  if (const int ready = look(count, mask)) return static_cast<int>(IoCall::result(ready));
  sets.keepCleared();
  const auto [error, until] = untilReady(timeout_ns);
  const size_t size = sets.size();
  pollfd few[8];
  const std::unique_ptr<pollfd[]> many(size > std::size(few) ? new (std::nothrow) pollfd[size] : nullptr);
  pollfd* const fds = size > std::size(few) ? many.get() : few;
  int ready = error != 0 ? -error : -ENOMEM;
  if (error == 0 && fds != nullptr) {
    sets.list(fds);
    CallWait call(EndedBy::kAny, mask);
    DescriptorWait wait(fds, size, engine, call);
    wait.stayWithFiles();
    wait.letThrough(mask);
    ready = wait.run(until, [&] {
      sets.restore();
      const int now = look(sets.count(), nullptr);
      return now == -EBADF && wait.hasMoved() ? sets.lookAtEach(fds, size) : now;
    });
  }
  if (ready < 0) sets.restore();  // and stay so if the call fails
  timespec left;
  if (ready == DescriptorWait::kPassOn) return real::pselect(sets.count(), read, write, except, timeLeft(until, left), mask);
  return static_cast<int>(IoCall::result(ready));
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout, const sigset_t* mask) {
  countCall(Hook::pselect);
  EpollEngine* const engine = hookEngine();
  timespec time{};
  const bool is_timeout = engine == nullptr || timeout == nullptr || probe::duration(timeout, &time) == 0;
  const int64_t timeout_ns = timeoutNs(timeout == nullptr ? nullptr : &time);
  if (engine != nullptr && timeout_ns == 0) chargePoll(*engine);
  if (engine == nullptr || timeout_ns == 0 || !is_timeout || count < 0) {
    return real::pselect(count, read, write, except, timeout, mask);
  }
  return selectInFiber(*engine, count, read, write, except, timeout_ns, mask);
}

/// Linux tells how much of the timeout was left.
int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  countCall(Hook::select);
  EpollEngine* const engine = hookEngine();
  if (engine == nullptr || count < 0) return real::select(count, read, write, except, timeout);
  if (timeout == nullptr) return selectInFiber(*engine, count, read, write, except, kNever, nullptr);
  const bool is_none = timeout->tv_sec == 0 && timeout->tv_usec == 0;
  if (is_none) chargePoll(*engine);
  if (is_none || timeout->tv_sec < 0 || timeout->tv_usec < 0) return real::select(count, read, write, except, timeout);
  const timespec seconds{timeout->tv_sec, 0};
  const int64_t timeout_ns = saturatingAdd(timeoutNs(&seconds), timeout->tv_usec * 1000);
  const Deadline deadline = Deadline::after(std::chrono::nanoseconds(timeout_ns), waitClock());
  const int ready = selectInFiber(*engine, count, read, write, except, timeout_ns, nullptr);
  timespec left{};
  if (timeLeft(deadline, left) != nullptr) *timeout = {left.tv_sec, left.tv_nsec / 1000};
  return ready;
}
int __select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  return select(count, read, write, except, timeout);
}

}  // extern "C"
