// Internal. A descriptor that the library itself owns (epoll, eventfd, timerfd). It is closed at the end of its scope, and the
// hooks do not track it.
#pragma once

#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/sys.h"

namespace sylar::detail {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : m_fd(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      m_fd = std::exchange(other.m_fd, -1);
    }
    return *this;
  }

  int get() const { return m_fd; }
  bool valid() const { return m_fd >= 0; }
  void reset() {
    if (m_fd >= 0) sys::closeFd(std::exchange(m_fd, -1));
  }

 private:
  int m_fd = -1;
};

}  // namespace sylar::detail
