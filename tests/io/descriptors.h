// For tests: pipes and socket pairs that close themselves. Their calls are plain: the library does not know of them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace sylar::test {

class Ends {
 public:
  Ends(int first, int second) : m_fds{first, second} {}
  ~Ends() { closeBoth(); }
  Ends(Ends&& other) noexcept : m_fds{std::exchange(other.m_fds[0], -1), std::exchange(other.m_fds[1], -1)} {}
  Ends& operator=(Ends&&) = delete;

  int operator[](size_t i) const { return m_fds[i]; }
  void close(size_t i) {
    if (m_fds[i] >= 0) ::close(std::exchange(m_fds[i], -1));
  }
  void closeBoth() {
    close(0);
    close(1);
  }
  /// Sends one byte into end `i`.
  void put(size_t i) const { EXPECT_EQ(::write(m_fds[i], "x", 1), 1); }
  /// Takes one byte out of end `i`.
  void get(size_t i) const {
    char byte;
    EXPECT_EQ(::read(m_fds[i], &byte, 1), 1);
  }
  /// Until it would block.
  void fill(size_t i) const {
    static constexpr char kBytes[65'536] = {};
    while (::write(m_fds[i], kBytes, sizeof kBytes) > 0) continue;
  }
  void empty(size_t i) const {
    static thread_local char bytes[65'536];
    while (::read(m_fds[i], bytes, sizeof bytes) > 0) continue;
  }

 private:
  int m_fds[2];
};

/// [0] is read from, [1] is written to; both non-blocking.
inline Ends makePipe() {
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
  return {fds[0], fds[1]};
}

/// Both ends alike, non-blocking.
inline Ends makeSockets() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {fds[0], fds[1]};
}

}  // namespace sylar::test
