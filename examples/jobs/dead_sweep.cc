#include "dead_sweep.h"

#include <thread>
#include <utility>

#include "sylar/fiber.h"
#include "sylar/log.h"

namespace jobs {

static auto g_logger = SYLAR_LOG_NAME("jobs");

static constexpr size_t kAtATime = 1000;  // so that no call keeps the store from others for long

DeadSweep::DeadSweep(Store& store, std::function<std::optional<uint64_t>()> fence, Options options)
    : m_store(store), m_fence(std::move(fence)), m_options(options) {}

void DeadSweep::run() {
  while (!sylar::this_fiber::cancelled()) {
    try {
      sweep();
      if (m_fence()) m_store.mend(m_options.visibility);
    } catch (const StoreError& failure) {
      if (!sylar::this_fiber::cancelled()) SYLAR_LOG_WARN(g_logger) << "cannot sweep: " << failure.what();
    }
    std::this_thread::sleep_for(m_options.period);
  }
}

void DeadSweep::sweep() {
  while (const auto fence = m_fence()) {  // each time, because it takes a while and a lease ends
    const auto deleted = m_store.sweepDead(*fence, m_options.keep, kAtATime);
    if (!deleted) {
      SYLAR_LOG_WARN(g_logger) << "a later leader has swept: the token " << *fence << " is of the past";
      return;
    }
    m_swept += *deleted;
    if (*deleted < kAtATime) return;
  }
}

}  // namespace jobs
