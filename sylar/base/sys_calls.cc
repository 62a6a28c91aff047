// The calls that fail when descriptors, registrations or threads run out. They have their own file for tests; see sys.h.
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "sylar/base/own_thread.h"
#include "sylar/base/sys.h"

namespace sylar::sys {

int eventFd() { return keepOwn(call(SYS_eventfd2, 0, EFD_NONBLOCK | EFD_CLOEXEC)); }
int epollCreate() { return keepOwn(call(SYS_epoll_create1, EPOLL_CLOEXEC)); }
int timerFd() { return keepOwn(call(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)); }

int epollControl(int epoll, int op, int fd, epoll_event* event) {
  return static_cast<int>(call(SYS_epoll_ctl, epoll, op, fd, event));
}

int createThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  detail::t_makes_own_thread = true;
  const int error = ::pthread_create(thread, attributes, start, argument);
  detail::t_makes_own_thread = false;
  return error;
}

}  // namespace sylar::sys
