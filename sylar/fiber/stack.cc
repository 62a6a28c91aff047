#include "sylar/fiber/stack.h"

#include <algorithm>
#include <atomic>
#include <new>

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

size_t roundUp(size_t size) { return (std::clamp(size, kMinStackSize, kMaxStackSize) + kPage - 1) & ~(kPage - 1); }

/// The mapped size of a stack: a colour is less than a page.
size_t mappedSize(const Stack& stack) { return (stack.size + kPage - 1) & ~(kPage - 1); }

void unmap(const Stack& stack) { sys::unmapMemory(stack.base - kGuardSize, mappedSize(stack) + kGuardSize); }

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

StackPool::~StackPool() {
  while (m_free != nullptr) {
    const Stack stack = m_free->stack;
    m_free = m_free->next;
    unmap(stack);
  }
}

Stack StackPool::take(size_t size) {
  const size_t mapped_size = roundUp(size);
  if (m_free == nullptr || mapped_size != m_mapped_size) return map(mapped_size);
  const Stack stack = m_free->stack;
  m_free = m_free->next;
  --m_count;
  return stack;
}

void StackPool::give(Stack stack) {
  forgetPoison(stack);
  if (m_count == 0) m_mapped_size = mappedSize(stack);
  if (m_count == kCapacity || mappedSize(stack) != m_mapped_size) {
    unmap(stack);
    return;
  }
  // The note lies where the next fiber's first frame will be: a page that is resident anyway.
  m_free = ::new (stack.top() - sizeof(Free)) Free{m_free, stack};
  ++m_count;
}

Stack StackPool::map(size_t mapped_size) {
  int error = 0;
  auto* memory = static_cast<char*>(sys::mapMemory(mapped_size + kGuardSize, &error));
  if (memory == nullptr) return {};
  // Where huge pages are "always" on, each stack would cost 2 MiB. A kernel without them refuses: also good. Before the guard:
  // once that has given the mapping an anon_vma, it no longer merges with its neighbours, and each stack would count for
  // max_map_count.
  sys::adviseMemory(memory, mapped_size + kGuardSize, MADV_NOHUGEPAGE);
  if (!installGuard(memory)) {
    sys::unmapMemory(memory, mapped_size + kGuardSize);
    return {};
  }
  return {memory + kGuardSize, mapped_size - kColourStep * (m_colour++ % kColours)};
}

}  // namespace sylar
