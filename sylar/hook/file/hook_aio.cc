// aio_suspend and lio_listio. libc makes asynchronous I/O on threads of its own, and a fiber asks again and again whether they are
// through. Source: aio_suspend(3), lio_listio(3).
#include <aio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>

#include "sylar/base/sys.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"

namespace sylar::detail {
namespace {

using Requests = std::span<aiocb* const>;

bool isRequest(const aiocb* one) { return one != nullptr && one->aio_lio_opcode != LIO_NOP; }

/// Asks until `ask` gives something else than -EAGAIN. Returns that, or -errno.
template <class Ask>
long untilThrough(EpollEngine& engine, Ask ask, Deadline latest = Deadline::never()) {
  engine.chargeCall();
  yieldIfBudgetIsSpent(engine);
  CallWait call(EndedBy::kNoRestart);
  return call.askAgain(ask, latest);
}

/// Waits for requests that were handed over, not all of them perhaps: `refusal` is then the error, and else 0. Returns 0 or -errno.
long await(EpollEngine& engine, Requests requests, int refusal) {
  const auto is_there = [](int error) {
    return [error](const aiocb* one) { return isRequest(one) && ::aio_error(one) == error; };
  };
  const long ended = untilThrough(engine, [&] { return std::ranges::any_of(requests, is_there(EINPROGRESS)) ? -EAGAIN : 0L; });
  if (ended != 0) return ended;
  const auto all = std::ranges::count_if(requests, isRequest);
  if (std::ranges::count_if(requests, is_there(0)) == all) return 0;
  // If none was taken, the call tells why.
  return refusal != 0 && std::ranges::count_if(requests, is_there(refusal)) == all ? -refusal : -EIO;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int aio_suspend(const aiocb* const list[], int count, const timespec* timeout) {
  countCall(Hook::aio_suspend);
  EpollEngine* const engine = hookEngine();
  if (engine == nullptr) return real::aio_suspend(list, count, timeout);
  const auto ask = [=]() -> long {
    static constexpr timespec kNow{};
    const long n = attempt::keepingErrno([=] { return real::aio_suspend(list, count, &kNow); });
    return n == -EINTR ? -EAGAIN : n;  // by a handler for which it has not waited
  };
  const auto latest =
      timeout == nullptr ? Deadline::never() : Deadline::after(std::chrono::nanoseconds(attempt::toNs(*timeout)), waitClock());
  const long n = untilThrough(*engine, ask, latest);
  return static_cast<int>(IoCall::result(n == -ETIMEDOUT ? -EAGAIN : n));
}
int aio_suspend64(const aiocb64* const list[], int count, const timespec* timeout) __attribute__((alias("aio_suspend")));

int lio_listio(int mode, aiocb* const list[], int count, sigevent* event) noexcept {
  const NoCancellationPoint whole;
  countCall(Hook::lio_listio);
  EpollEngine* const engine = hookEngine();
  if (engine == nullptr || mode != LIO_WAIT || count < 0) return real::lio_listio(mode, list, count, event);
  const int saved_errno = sys::errnoRef();
  const bool taken = real::lio_listio(LIO_NOWAIT, list, count, nullptr) == 0;
  const int refusal = taken ? 0 : sys::errnoRef();
  sys::errnoRef() = saved_errno;
  return static_cast<int>(IoCall::result(await(*engine, Requests(list, static_cast<size_t>(count)), refusal)));
}
int lio_listio64(int mode, aiocb64* const list[], int count, sigevent* event) noexcept __attribute__((alias("lio_listio")));

}  // extern "C"
