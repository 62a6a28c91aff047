#include "sylar/sync/holder.h"

#include <fmt/format.h>

#include "sylar/base/sys.h"
#include "sylar/check.h"
#include "sylar/fiber/thread_fibers.h"

namespace sylar::detail {
namespace {

constexpr int kThreadIdShift = 2;

}  // namespace

Holder Holder::me() {
  const FiberCore* const core = runningFiber();
  if (core != nullptr) return Holder(reinterpret_cast<uintptr_t>(core));
  return Holder(static_cast<uintptr_t>(sys::threadId()) << kThreadIdShift | kThread);
}

std::string Holder::describe() const {
  if (isNobody()) return "nobody";
  if (!isFiber()) return fmt::format("thread {}", m_bits >> kThreadIdShift);
  const Fiber& fiber = *core().fiber;
  const std::string name = fiber.getName();
  return fmt::format("fiber {}{}{}", fiber.getId(), name.empty() ? "" : " ", name);
}

void failRelock(Holder me, const char* what) {
  checkFailed(__FILE__, __LINE__, "holder != me", fmt::format("{} locks a sylar::{} that it holds already", me.describe(), what));
}

void failUpgrade(Holder me, const char* what) {
  checkFailed(__FILE__, __LINE__, "!me.holds(lock)",
              fmt::format("{} locks for writing a sylar::{} that it holds for reading", me.describe(), what));
}

void failUnlock(Holder me, Holder holder, const char* what) {
  checkFailed(__FILE__, __LINE__, "holder == me",
              fmt::format("{} unlocks a sylar::{} that {} holds", me.describe(), what, holder.describe()));
}

void failUnlockOfReaders(Holder me, const char* what) {
  checkFailed(__FILE__, __LINE__, "me.mayHold(lock)",
              fmt::format("{} unlocks a sylar::{} that others hold for reading", me.describe(), what));
}

}  // namespace sylar::detail
