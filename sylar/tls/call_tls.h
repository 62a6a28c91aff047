// Internal. How OpenSSL is called.
#pragma once

#include <cxxabi.h>

#include <exception>
#include <new>

#include "sylar/base/internal.h"
#include "sylar/fiber/thread_fibers.h"
#include "sylar/hook/thread/identity.h"

namespace sylar::detail {

/// Calls `act` as a thread: OpenSSL keeps errors for each, and its locks may suspend the fiber. If there is no thread for that, it
/// is called as the worker.
template <class Act>
void callTls(Act act) {
  if (onThreadStack()) return act();
  std::exception_ptr thrown;
  bool has_run = false;
  const auto body = [&] {
    has_run = true;
    try {
      act();
    } catch (const abi::__forced_unwind&) {
      throw;
    } catch (...) {  // none may leave the borrowed thread
      thrown = std::current_exception();
    }
  };
  try {
    asBorrowedThread(body);
  } catch (const std::bad_alloc&) {
    if (!has_run) body();
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace sylar::detail
