#include "sylar/fiber/stack.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/fiber_refused.h"

namespace sylar::detail {
namespace {

constexpr size_t kPage = 4096;
constexpr int kAdviceGuardInstall = 102;   // MADV_GUARD_INSTALL; glibc 2.36 does not name it
constexpr int kAdviceDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18
constexpr size_t kColourStep = 128;        // tops that differ by this much fall into different cache sets
constexpr uint32_t kColours = 12;          // so that the frames of an idle connection fit into the rest of the first page

size_t roundUp(size_t size) {
  size = std::clamp(size, kMinStackSize, kMaxStackSize);
  return size <= StackPool::kMaxPooledSize ? std::bit_ceil(size) : (size + kPage - 1) & ~(kPage - 1);
}

/// Returns what roundUp() returned for this stack. That works because a colour is less than a page.
size_t mappedSize(const Stack& stack) { return (stack.size + kPage - 1) & ~(kPage - 1); }

size_t classOf(size_t mapped_size) {
  SYLAR_DCHECK(std::has_single_bit(mapped_size) && mapped_size >= kMinStackSize);
  return std::countr_zero(mapped_size / kMinStackSize);
}

bool installGuard(void* address, size_t size) {
  static constinit std::atomic<bool> light_guards{true};
  if (light_guards.load(std::memory_order_relaxed)) {
    const int result = sys::adviseMemory(address, size, kAdviceGuardInstall);
    if (result == 0) return true;
    if (result != -EINVAL && result != -EPERM && result != -ENOSYS) {
      noteRefused("madvise(MADV_GUARD_INSTALL) for the stack of a fiber", result);
      return false;
    }
    light_guards.store(false, std::memory_order_relaxed);  // an older kernel, a filter that does not know it, or mlockall
  }
  const int error = sys::protectMemory(address, size, PROT_NONE);
  if (error != 0) {
    noteRefused("mprotect for the stack of a fiber", error);
    return false;
  }
  sys::adviseMemory(address, size,
                    kAdviceDontNeedLocked);  // mlockall has filled it; a kernel that does not know this keeps it so
  return true;
}

/// How many stacks of all threads have a wide guard.
constinit std::atomic<long> g_wide_guards{0};

void countGuard(size_t size, long change) {
  if (size == kGuardSize) g_wide_guards.fetch_add(change, std::memory_order_relaxed);
}

constinit std::atomic<const char*> g_refused{"memory for a fiber"};
constinit std::atomic<int> g_error{ENOMEM};

}  // namespace

void noteRefused(const char* call, int error) noexcept {
  g_refused.store(call, std::memory_order_relaxed);
  g_error.store(error, std::memory_order_relaxed);
}

sys::MemoryRefused lastRefused() noexcept {
  return {g_refused.load(std::memory_order_relaxed), g_error.load(std::memory_order_relaxed)};
}

StackClass::~StackClass() {
  while (m_free_count > 0) {
    unmapFree(
        [](const Stack& stack) { sys::adviseMemory(stack.base, mappedSize(stack), MADV_DONTNEED); });  // its addresses are lost
  }
  if (m_untouched != m_untouched_end) sys::unmapMemory(m_untouched, m_untouched_end - m_untouched);
}

Stack StackClass::map(size_t mapped_size) {
  SYLAR_DCHECK(mapped_size >= kMinStackSize && mapped_size % kPage == 0);
  if (m_untouched == m_untouched_end && !mapMore(mapped_size)) return {};
  const size_t guard = m_untouched_guard;
  if (!installGuard(m_untouched, guard)) return {};
  countGuard(guard, 1);
  char* const base = std::exchange(m_untouched, m_untouched + guard + mapped_size) + guard;
  const size_t colour = kColourStep * (m_colour++ % kColours);
  return {base, static_cast<uint32_t>(mapped_size - colour), static_cast<uint32_t>(guard)};
}

void StackClass::cool() {
  SYLAR_DCHECK(m_warm_count <= m_free_count);
  const size_t stay_warm = m_warm_count / 2;
  const Free* at = m_free;
  for (size_t i = 0; i < m_warm_count; ++i, at = at->next) {
    if (i >= stay_warm) sys::adviseMemory(at->stack.base, mappedSize(at->stack) - kPage, MADV_DONTNEED);
  }
  m_warm_count = stay_warm;
}

bool StackClass::unmapSome() {
  bool refused = false;
  unmapFree([&](const Stack& still_here) {
    put(still_here);
    refused = true;
  });
  return !refused;
}

/// Maps memory for more stacks of `mapped_size` bytes each, and room for their guards. If not even one with a wide guard is
/// granted, the guards are narrow.
bool StackClass::mapMore(size_t mapped_size) {
  SYLAR_DCHECK(m_untouched == m_untouched_end);
  m_untouched_guard = g_wide_guards.load(std::memory_order_relaxed) < kWideGuards ? kGuardSize : kLeastGuardSize;
  int error = 0;
  for (size_t count = m_at_once; count > 0;) {
    const size_t size = m_untouched_guard + mapped_size;
    m_untouched = static_cast<char*>(sys::mapMemory(count * size, &error));
    if (m_untouched == nullptr) {
      const bool narrows = count == 1 && m_untouched_guard == kGuardSize;
      narrows ? m_untouched_guard = kLeastGuardSize : count /= 2;
      continue;
    }
    m_untouched_end = m_untouched + count * size;
    m_at_once = std::clamp(kMappedAtOnce / size, size_t{1}, 2 * count);
    // If huge pages are set to "always", each stack would cost 2 MiB. A kernel without huge pages refuses, which is fine. This
    // comes before the guards, because a guard gives the mapping an anon_vma. After that it no longer merges with its
    // neighbours, and each would count towards max_map_count.
    sys::adviseMemory(m_untouched, count * size, MADV_NOHUGEPAGE);
    return true;
  }
  m_untouched_end = nullptr;
  noteRefused("mmap for the stack of a fiber", error);
  return false;
}

/// Unmaps the kReturned stacks that came last, neighbours in one call. Unmapping a stack between others takes one more mapping.
/// Stacks that the kernel refuses for that reason go to `refused`.
template <class Refused>
void StackClass::unmapFree(Refused refused) {
  SYLAR_DCHECK(m_free_count > 0);
  std::array<Stack, kReturned> stacks;
  const auto end = stacks.begin() + std::min(m_free_count, kReturned);
  for (auto stack = stacks.begin(); stack != end; ++stack) {
    *stack = take();
  }
  std::sort(stacks.begin(), end, [](const Stack& a, const Stack& b) { return a.base < b.base; });
  for (auto stack = stacks.begin(); stack != end;) {
    char* const first = stack->base - stack->guard;
    char* last = first;
    auto next = stack;
    for (; next != end && next->base - next->guard == last; ++next) last = next->base + mappedSize(*next);
    if (sys::unmapMemory(first, last - first) != 0) {
      std::for_each(stack, next, refused);
    } else {
      std::for_each(stack, next, [](const Stack& gone) { countGuard(gone.guard, -1); });
    }
    stack = next;
  }
}

[[gnu::noinline]] Stack StackPool::mapAlone(size_t mapped_size) { return StackClass().map(mapped_size); }
[[gnu::noinline]] void StackPool::unmapAlone(Stack stack) { StackClass().put(stack); }  // unmapped by the destructor

Stack StackPool::take(size_t size) {
  const size_t mapped_size = roundUp(size);
  if (mapped_size > kMaxPooledSize) return mapAlone(mapped_size);
  StackClass& stacks = m_classes[classOf(mapped_size)];
  if (stacks.free() == 0) return stacks.map(mapped_size);
  SYLAR_DCHECK(m_kept_bytes >= kGuardSize + mapped_size && m_warm_bytes <= m_kept_bytes);
  m_kept_bytes -= kGuardSize + mapped_size;
  if (stacks.warm() > 0) m_warm_bytes -= mapped_size;
  if (m_kept_bytes < kKeptBytes / 2) m_limit = kKeptBytes;
  return stacks.take();
}

void StackPool::put(Stack stack) {
  SYLAR_DCHECK(stack);
  const size_t mapped_size = mappedSize(stack);
  if (mapped_size > kMaxPooledSize) return unmapAlone(stack);
  m_classes[classOf(mapped_size)].put(stack);
  m_kept_bytes += kGuardSize + mapped_size;
  m_warm_bytes += mapped_size;
  if (m_kept_bytes > m_limit) unmapSome();
  while (m_warm_bytes > kWarmBytes) cool();
}

/// Returns the class that has the most of what `bytes` counts.
template <class Bytes>
size_t StackPool::most(Bytes bytes) const {
  size_t found = 0;
  for (size_t i = 1; i < kClasses; ++i) {
    if ((this->*bytes)(i) > (this->*bytes)(found)) found = i;
  }
  return found;
}

size_t StackPool::keptBytes(size_t i) const { return m_classes[i].free() * (kGuardSize + (kMinStackSize << i)); }
size_t StackPool::warmBytes(size_t i) const { return m_classes[i].warm() * (kMinStackSize << i); }

void StackPool::cool() {
  const size_t i = most(&StackPool::warmBytes);
  const size_t before = warmBytes(i);
  m_classes[i].cool();
  SYLAR_DCHECK(warmBytes(i) <= before && before <= m_warm_bytes);
  m_warm_bytes -= before - warmBytes(i);
}

void StackPool::unmapSome() {
  const size_t i = most(&StackPool::keptBytes);
  SYLAR_DCHECK(keptBytes(i) <= m_kept_bytes && warmBytes(i) <= m_warm_bytes);
  m_kept_bytes -= keptBytes(i);
  m_warm_bytes -= warmBytes(i);
  const bool unmapped = m_classes[i].unmapSome();
  m_kept_bytes += keptBytes(i);
  m_warm_bytes += warmBytes(i);
  m_limit = unmapped ? kKeptBytes : m_kept_bytes + m_kept_bytes / 2;
}

}  // namespace sylar::detail
