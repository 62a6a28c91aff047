#include "sylar/sync/blocking.h"

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "sylar/fiber_local.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/sync/future.h"

namespace sylar {

void setBlockingLimits(const BlockingLimits& limits) {
  if (limits.max_threads == 0) throw std::invalid_argument("sylar::setBlockingLimits: max_threads is 0");
  BlockingPool::process().setLimits(limits);
}

namespace detail {
namespace {

[[noreturn]] void fail(int error) { throw std::system_error(error, std::generic_category(), "sylar::blocking"); }

}  // namespace

void runOnHelper(std::shared_ptr<PromisedCall> call) {
  if (!BlockingPool::needsHelper()) return call->run(false);
  const int error = BlockingPool::process().post([call = std::move(call), inherited = InheritedLocals()]() mutable {
    inherited.install();
    call->run(true);
  });
  if (error != 0) throw std::system_error(EAGAIN, std::generic_category(), "sylar::blocking: the pool is full");
}

void checkBlocking(Deadline deadline) {
  if (const int error = endOfWait(deadline)) fail(error);
}

void awaitBlocking(Event& ended, Deadline deadline) {
  if (!ended.wait(deadline)) fail(errorOfWait(deadline));
}

}  // namespace detail
}  // namespace sylar
