#include "sylar/sync/blocking.h"

#include <cerrno>
#include <stdexcept>

#include "sylar/sync/blocking_pool.h"

namespace sylar {

void setBlockingLimits(const BlockingLimits& limits) {
  if (limits.max_threads == 0) throw std::invalid_argument("sylar::setBlockingLimits: max_threads is 0");
  BlockingPool::process().setLimits(limits);
}

bool detail::usesHelpers() { return BlockingPool::needsHelper(); }

void detail::runOnHelper(std::function<void()> function) {
  if (BlockingPool::process().post(std::move(function)) == 0) return;
  throw std::system_error(EAGAIN, std::generic_category(), "sylar::blocking: the pool is full");
}

}  // namespace sylar
