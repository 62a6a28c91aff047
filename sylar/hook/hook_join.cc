// pthread_join and its kin: a helper thread joins. Source: pthread_join(3), pthread_timedjoin_np(3), thrd_join of C11.
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>

#include "sylar/hook/hook_count.h"
#include "sylar/hook/lock_wait.h"
#include "sylar/hook/offload.h"
#include "sylar/hook/real.h"

namespace sylar {
namespace {

/// Makes the call here if it cannot wait: off fibers, or with the calling thread, which libc refuses.
template <class Call>
int join(Hook hook, pthread_t thread, Call call) {
  countCall(hook);
  if (outsideFibers() || !locksSuspend() || ::pthread_equal(thread, ::pthread_self()) != 0) return call();
  return offload(call, BlockingPool::Length::kOthers);
}

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int pthread_join(pthread_t thread, void** value) {
  return join(Hook::pthread_join, thread, [=] { return real::pthread_join(thread, value); });
}
int pthread_timedjoin_np(pthread_t thread, void** value, const timespec* time) {
  return join(Hook::pthread_timedjoin_np, thread, [=] { return real::pthread_timedjoin_np(thread, value, time); });
}
int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t clock, const timespec* time) {
  return join(Hook::pthread_clockjoin_np, thread, [=] { return real::pthread_clockjoin_np(thread, value, clock, time); });
}
int thrd_join(thrd_t thread, int* value) {
  void* result = nullptr;
  if (pthread_join(thread, &result) != 0) return thrd_error;
  if (value != nullptr) *value = static_cast<int>(reinterpret_cast<intptr_t>(result));
  return thrd_success;
}

}  // extern "C"
