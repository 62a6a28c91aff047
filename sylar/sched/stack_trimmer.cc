#include "sylar/sched/stack_trimmer.h"

#include <sys/mman.h>
#include <unistd.h>

#include "sylar/base/sys.h"
#include "sylar/check.h"

namespace sylar::detail {

[[gnu::noinline]] bool StackTrimmer::sweep(const Clock& clock, uint64_t switches, LiveFibers& fibers) {
  SYLAR_DCHECK(m_after_ns > 0);
  const int64_t now_ns = clock.nowNs();
  if (m_next_ns == kNever && switches != m_switches) m_next_ns = saturatingAdd(now_ns, m_after_ns);
  if (now_ns < m_next_ns) return false;
  if (!m_under_way) {
    m_under_way = true;
    m_again = switches != m_switches;
    m_switches = switches;
    fibers.beginWalk();
  }
  for (size_t i = 0; i < kAtOnce; ++i) {
    FiberCore* const core = fibers.walk();
    if (core == nullptr) {
      m_under_way = false;
      m_next_ns = m_again ? saturatingAdd(clock.nowNs(), m_after_ns) : kNever;
      return false;
    }
    look(*core);
  }
  return true;
}

/// A fiber whose wait is open is suspended, since its worker's loop asks.
void StackTrimmer::look(FiberCore& core) {
  if (!core.wait.isOpen()) return;
  uint64_t& seen = core.started().trim_mark;
  const uint64_t wait = 2 * core.wait.epoch();
  if (seen == wait) {
    trim(core);
    seen = wait + 1;
  } else if (seen != wait + 1) {
    seen = wait;
  }
}

/// A fiber that has gone on to another stack, or waits on one, such as that of a signal handler, keeps its own.
void StackTrimmer::trim(const FiberCore& core) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const char* const lowest = core.context.lowest();
  const bool on_first_stack = core.stack.contains(&core.started());
  if (!on_first_stack || lowest < core.stack.base || lowest >= core.stack.top()) return;
  const size_t unused = static_cast<size_t>(lowest - core.stack.base) / page * page;
  if (unused > 0 && sys::adviseMemory(core.stack.base, unused, MADV_DONTNEED) == 0) m_trimmed.add();
}

}  // namespace sylar::detail
