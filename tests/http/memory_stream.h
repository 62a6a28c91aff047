// Both ends of a connection in memory: what a peer sends, cut as one likes, with time that passes; and what it gets.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sylar/clock.h"
#include "sylar/http/byte_stream.h"

namespace sylar::http {

/// A peer that sends pieces; each comes `delay` after the one before was read, on a clock that only moves while somebody waits
/// for it. When all has come it ends, or breaks with `last_errno`, or is silent forever if that is EAGAIN.
class MemorySource : public ByteSource {
 public:
  MemorySource() = default;
  explicit MemorySource(ManualClock& clock) : m_clock(&clock) {}

  void send(std::string_view bytes, std::chrono::nanoseconds delay = {}) {
    if (!bytes.empty()) m_pieces.push_back({std::string(bytes), delay});
  }
  void sendByteByByte(std::string_view bytes, std::chrono::nanoseconds delay = {}) {
    for (char c : bytes) send({&c, 1}, delay);
  }
  void breakWith(int error) { m_last_errno = error; }

  ssize_t read(char* buffer, size_t size, std::chrono::nanoseconds timeout) override {
    ++m_reads;
    if (m_pieces.empty()) return end(timeout);
    Piece& piece = m_pieces.front();
    if (!waitFor(piece.delay, timeout)) return -1;
    piece.delay = {};
    const size_t count = std::min(size, piece.bytes.size());
    std::memcpy(buffer, piece.bytes.data(), count);
    piece.bytes.erase(0, count);
    if (piece.bytes.empty()) m_pieces.pop_front();
    return static_cast<ssize_t>(count);
  }

  /// Returns the bytes that were not read yet.
  std::string unread() const {
    std::string all;
    for (const Piece& piece : m_pieces) all += piece.bytes;
    return all;
  }
  size_t reads() const { return m_reads; }

 private:
  struct Piece {
    std::string bytes;
    std::chrono::nanoseconds delay;
  };

  ssize_t end(std::chrono::nanoseconds timeout) {
    if (m_last_errno == 0) return 0;
    if (m_last_errno == EAGAIN && m_clock != nullptr) m_clock->advance(timeout);
    errno = m_last_errno;
    return -1;
  }
  bool waitFor(std::chrono::nanoseconds& delay, std::chrono::nanoseconds timeout) {
    if (delay.count() == 0) return true;
    m_clock->advance(std::min(delay, timeout));
    if (delay <= timeout) return true;
    delay -= timeout;
    errno = EAGAIN;
    return false;
  }

  ManualClock* m_clock = nullptr;
  std::deque<Piece> m_pieces;
  int m_last_errno = 0;
  size_t m_reads = 0;
};

/// Records the bytes that were written, and the number of calls. Fails from call `fail_from` on.
class MemorySink : public ByteSink {
 public:
  bool writeAll(std::span<iovec> parts) override {
    if (m_calls++ >= m_fail_from) {
      errno = EPIPE;
      return false;
    }
    m_parts = parts.size();
    for (const iovec& part : parts) m_bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
    return true;
  }

  std::string take() { return std::exchange(m_bytes, {}); }
  const std::string& bytes() const { return m_bytes; }
  size_t calls() const { return m_calls; }
  size_t lastParts() const { return m_parts; }
  void failFrom(size_t call) { m_fail_from = call; }

 private:
  std::string m_bytes;
  size_t m_calls = 0, m_parts = 0, m_fail_from = static_cast<size_t>(-1);
};

}  // namespace sylar::http
