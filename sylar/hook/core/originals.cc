// sylar's names for libc's own functions. Constant-initialised, so they are there before any constructor runs.
#include <cstdarg>

#include "sylar/hook.h"
#include "sylar/hook/core/real.h"

namespace sylar::detail {
namespace {

template <class Pointer, auto& kFunction>
struct Original;
template <class Result, class... Args, auto& kFunction>
struct Original<Result (*)(Args...), kFunction> {
  static Result call(Args... args) { return kFunction(args...); }
};

int originalFcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);  // an int comes in the same register
  va_end(arguments);
  return real::fcntl(fd, command, argument);
}

int originalIoctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return real::ioctl(fd, request, argument);
}

}  // namespace
}  // namespace sylar::detail

using sylar::detail::Original;

extern "C" {

#define SYLAR_ORIGINAL_(name) constinit const name##_fun name##_f = Original<name##_fun, sylar::real::name>::call;
SYLAR_ORIGINAL_(sleep)
SYLAR_ORIGINAL_(usleep)
SYLAR_ORIGINAL_(nanosleep)
SYLAR_ORIGINAL_(socket)
SYLAR_ORIGINAL_(connect)
SYLAR_ORIGINAL_(accept)
SYLAR_ORIGINAL_(read)
SYLAR_ORIGINAL_(readv)
SYLAR_ORIGINAL_(recv)
SYLAR_ORIGINAL_(recvfrom)
SYLAR_ORIGINAL_(recvmsg)
SYLAR_ORIGINAL_(write)
SYLAR_ORIGINAL_(writev)
SYLAR_ORIGINAL_(send)
SYLAR_ORIGINAL_(sendto)
SYLAR_ORIGINAL_(sendmsg)
SYLAR_ORIGINAL_(close)
SYLAR_ORIGINAL_(getsockopt)
SYLAR_ORIGINAL_(setsockopt)
#undef SYLAR_ORIGINAL_

constinit const fcntl_fun fcntl_f = sylar::detail::originalFcntl;
constinit const ioctl_fun ioctl_f = sylar::detail::originalIoctl;

}  // extern "C"
