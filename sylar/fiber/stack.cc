#include "sylar/fiber/stack.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "sylar/base/sys.h"

#ifdef SYLAR_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace sylar {
namespace {

constexpr size_t kPage = 4096;
constexpr int kAdviceGuardInstall = 102;  // MADV_GUARD_INSTALL; glibc 2.36 does not name it
constexpr size_t kColourStep = 128;       // tops that differ by this much fall into different cache sets
constexpr uint32_t kColours = 16;

size_t roundUp(size_t size) {
  size = std::clamp(size, kMinStackSize, kMaxStackSize);
  return size <= StackPool::kMaxPooledSize ? std::bit_ceil(size) : (size + kPage - 1) & ~(kPage - 1);
}

/// What roundUp() said: a colour is less than a page.
size_t mappedSize(const Stack& stack) { return (stack.size + kPage - 1) & ~(kPage - 1); }

size_t classOf(size_t mapped_size) { return std::countr_zero(mapped_size / kMinStackSize); }

bool installGuard(void* address) {
  static constinit std::atomic<bool> light_guards{true};
  if (light_guards.load(std::memory_order_relaxed)) {
    const int result = sys::adviseMemory(address, kGuardSize, kAdviceGuardInstall);
    if (result == 0) return true;
    if (result != -EINVAL) return false;
    light_guards.store(false, std::memory_order_relaxed);  // an older kernel
  }
  return sys::protectMemory(address, kGuardSize, PROT_NONE) == 0;
}

/// A fiber's last frames never return, so the poison of their variables is still there.
void forgetPoison([[maybe_unused]] const Stack& stack) {
#ifdef SYLAR_ASAN
  __asan_unpoison_memory_region(stack.base, stack.size);
#endif
}

}  // namespace

StackClass::~StackClass() {
  while (m_free_count > 0) {
    unmapFree(
        [](const Stack& stack) { sys::adviseMemory(stack.base, mappedSize(stack), MADV_DONTNEED); });  // its addresses are lost
  }
  if (m_untouched != m_untouched_end) sys::unmapMemory(m_untouched, m_untouched_end - m_untouched);
}

Stack StackClass::take(size_t mapped_size) {
  if (m_free != nullptr) {
    --m_free_count;
    return std::exchange(m_free, m_free->next)->stack;
  }
  m_limit = kCapacity;  // all that was kept is in use
  const size_t size = kGuardSize + mapped_size;
  if (m_untouched == m_untouched_end && !mapMore(size)) return {};
  if (!installGuard(m_untouched)) return {};
  return {std::exchange(m_untouched, m_untouched + size) + kGuardSize, mapped_size - kColourStep * (m_colour++ % kColours)};
}

void StackClass::give(Stack stack) {
  if (m_free_count >= m_limit) {
    bool refused = false;
    unmapFree([&](const Stack& still_here) {
      keep(still_here);
      refused = true;
    });
    m_limit = refused ? m_free_count + m_free_count / 2 : kCapacity;  // not again at once
  }
  keep(stack);
}

void StackClass::keep(Stack stack) {
  // The note lies where the next fiber's first frame will be: a page that is resident anyway.
  m_free = ::new (stack.top() - sizeof(Free)) Free{m_free, stack};
  ++m_free_count;
}

/// Of `size` bytes each, with the guard.
bool StackClass::mapMore(size_t size) {
  int error = 0;
  for (size_t count = m_at_once; count > 0; count /= 2) {
    m_untouched = static_cast<char*>(sys::mapMemory(count * size, &error));
    if (m_untouched == nullptr) continue;
    m_untouched_end = m_untouched + count * size;
    m_at_once = std::clamp(kMappedAtOnce / size, size_t{1}, 2 * count);
    // Where huge pages are "always" on, each stack would cost 2 MiB. A kernel without them refuses: also good. Before the guards:
    // once one has given the mapping an anon_vma, it no longer merges with its neighbours, and each would count for
    // max_map_count.
    sys::adviseMemory(m_untouched, count * size, MADV_NOHUGEPAGE);
    return true;
  }
  m_untouched_end = nullptr;
  return false;
}

/// The last kReturned that came, neighbours by one call. To unmap what lies between others takes a mapping more: those that the
/// kernel refuses for that are `refused`.
template <class Refused>
void StackClass::unmapFree(Refused refused) {
  std::array<Stack, kReturned> stacks;
  const auto end = stacks.begin() + std::min(m_free_count, kReturned);
  for (auto stack = stacks.begin(); stack != end; ++stack) {
    *stack = m_free->stack;
    m_free = m_free->next;
    --m_free_count;
  }
  std::sort(stacks.begin(), end, [](const Stack& a, const Stack& b) { return a.base < b.base; });
  const size_t size = kGuardSize + mappedSize(stacks.front());
  for (auto stack = stacks.begin(); stack != end;) {
    auto next = stack + 1;
    while (next != end && next->base == stack->base + (next - stack) * size) ++next;
    if (sys::unmapMemory(stack->base - kGuardSize, (next - stack) * size) != 0) std::for_each(stack, next, refused);
    stack = next;
  }
}

Stack StackPool::take(size_t size) {
  const size_t mapped_size = roundUp(size);
  if (mapped_size <= kMaxPooledSize) return m_classes[classOf(mapped_size)].take(mapped_size);
  return StackClass().take(mapped_size);
}

void StackPool::give(Stack stack) {
  forgetPoison(stack);
  const size_t mapped_size = mappedSize(stack);
  if (mapped_size <= kMaxPooledSize) return m_classes[classOf(mapped_size)].give(stack);
  StackClass().give(stack);  // unmaps it at its end
}

}  // namespace sylar
