#include "sylar/http/socket_bytes.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "sylar/base/os_mutex.h"

namespace sylar::http::detail {

namespace {

/// The longest single wait, also for a deadline that is never reached.
constexpr int64_t kLongestMs = 24 * 3600 * 1000;

/// The room of an empty InputBuffer, as memory that is taken late.
class LateRoom final : public PooledBuffer {
 public:
  explicit LateRoom(InputBuffer& buffer) : m_buffer(buffer) {}

  char* take() noexcept override {
    try {
      return m_buffer.room().data();
    } catch (const std::bad_alloc&) {
      m_had_no_memory = true;
      return nullptr;
    }
  }
  void giveBack() noexcept override { m_buffer.shrink(); }

  bool hadNoMemory() const { return m_had_no_memory; }

 private:
  static_assert(InputBuffer::kUsualSize == kSize);
  InputBuffer& m_buffer;
  bool m_had_no_memory = false;
};

/// Returns whole milliseconds, rounded up so that nothing ends early.
int64_t toMs(std::chrono::nanoseconds time) { return std::chrono::ceil<std::chrono::milliseconds>(time).count(); }

}  // namespace

template <class Receive>
ssize_t SocketBytes::receiveWithin(std::chrono::nanoseconds timeout, Receive receive) {
  const auto grace = std::exchange(m_grace, kNoRequest);
  const ssize_t count = receiveFor(std::min(grace, timeout), receive);
  if (count >= 0 || errno != EAGAIN || grace >= timeout) return count;
  return receiveIdle(timeout - grace, receive);
}

// What has come is received even if the wait has ended for another reason.
template <class Receive>
[[gnu::noinline]] ssize_t SocketBytes::receiveIdle(std::chrono::nanoseconds timeout, Receive receive) {
  endRequest().idle.store(true);
  ssize_t count = receiveFor(endRequest().ending.load() ? std::chrono::nanoseconds{0} : timeout, receive);
  if (count < 0 && errno == ECANCELED && isEnding()) count = receive(MSG_DONTWAIT);
  endIdle();
  return count;
}

// Calls `receive(flags)`, which is recv(2) with those flags. A wait that ends without bytes looks once more. The socket keeps its
// timeout if that is short enough, so that a connection on which requests come and go does not set one each time. If that timeout
// ends the wait too early, the wait goes on for the time that is left. The time left is computed from the timeouts: if the first
// wait ended late, as on a busy worker, the whole wait ends that much later. To measure it, every read would have to look at the
// clock before it begins.
template <class Receive>
[[gnu::always_inline]] inline ssize_t SocketBytes::receiveFor(std::chrono::nanoseconds timeout, Receive receive) {
  int64_t left_ms = std::min(toMs(timeout), kLongestMs);
  for (bool again = false;; again = true) {
    const int64_t set_ms = m_socket.getRecvTimeout();
    const bool fits = !again && set_ms > 0 && set_ms <= left_ms;
    if (left_ms > 0 && !fits && !m_socket.setRecvTimeout(left_ms)) return -1;
    const int flags = left_ms > 0 ? 0 : MSG_DONTWAIT;
    const ssize_t count = receive(flags);
    if (count >= 0 || errno != EAGAIN || flags != 0) return count;
    left_ms -= fits ? set_ms : left_ms;
  }
}

ssize_t SocketBytes::read(char* buffer, size_t size, std::chrono::nanoseconds timeout) {
  return receiveWithin(timeout, [=, this](int flags) { return m_socket.recv(buffer, size, flags); });
}

ssize_t SocketBytes::readInto(InputBuffer& buffer, std::chrono::nanoseconds timeout) {
  if (!buffer.empty()) return ByteSource::readInto(buffer, timeout);
  LateRoom room(buffer);
  const ssize_t count = receiveWithin(timeout, [&](int flags) { return SocketControl::receiveIntoPool(m_socket, room, flags); });
  if (room.hadNoMemory()) throw std::bad_alloc();
  if (count > 0) buffer.filled(static_cast<size_t>(count));
  return count;
}

// A blocking send tells only at its end how far it came, and a peer that takes a byte now and then could hold it without end. So
// each send does not wait, and each wait is one for room.
bool SocketBytes::writeAll(std::span<iovec> parts) {
  while (true) {
    while (!parts.empty() && parts.front().iov_len == 0) parts = parts.subspan(1);
    if (parts.empty()) return true;
    const iovec& only = parts.front();  // send(2) is cheaper than sendmsg(2)
    ssize_t count = parts.size() == 1 ? SocketControl::sendBatched(m_socket, only.iov_base, only.iov_len)
                                      : m_socket.send(parts.data(), parts.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) {
      if (!awaitTaken()) return false;
      continue;
    }
    if (count < 0) return false;
    for (iovec& part : parts) {
      const size_t done = std::min(static_cast<size_t>(count), part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + done;
      part.iov_len -= done;
      count -= static_cast<ssize_t>(done);
    }
  }
}

// There is room only when a good part of what the kernel holds has gone, which takes time with a slow peer. So what counts is how
// much the peer has taken.
bool SocketBytes::awaitTaken() {
  const int before = m_socket.getUnsent();
  const auto seconds = std::chrono::duration<double>(m_limits.write_timeout).count();
  const auto least = static_cast<int64_t>(seconds * static_cast<double>(m_limits.min_write_rate));
  const int ready = m_socket.awaitWritable(static_cast<int>(std::min(toMs(m_limits.write_timeout), kLongestMs)));
  if (ready > 0) return true;
  if (ready == 0) {
    if (before - m_socket.getUnsent() >= std::max<int64_t>(least, 1)) return true;
    abort();
    errno = ETIMEDOUT;
  }
  return false;
}

void SocketBytes::endIdle() {
  if (!endRequest().idle.load(std::memory_order_relaxed)) return;
  const Lock lock(SocketControl::lock(m_socket));
  endRequest().idle.store(false, std::memory_order_relaxed);
}

// A wait that has not begun, or is a plain thread's, cannot be cancelled. It ends by the shutdown, after which bytes that have
// arrived are still read, but later ones make the kernel reset the connection. Source: tcp(7), as Linux does it.
void SocketBytes::end(Socket& socket) {
  EndRequest& asked = SocketControl::endRequest(socket);
  asked.ending.store(true);
  const Lock lock(SocketControl::lock(socket));
  if (asked.idle.load() && !socket.cancelRead() && SocketControl::unread(socket) <= 0) socket.shutdown(SHUT_RD);
}

void SocketBytes::shutdownWrite() { m_socket.shutdown(SHUT_WR); }

void SocketBytes::abort() {
  m_cut = true;
  m_socket.setOption(SOL_SOCKET, SO_LINGER, linger{1, 0});
}

}  // namespace sylar::http::detail
