// Internal. The state that the connections of a server share; each of them keeps it alive.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "sylar/base/internal.h"
#include "sylar/http/http_names.h"
#include "sylar/http/limits.h"

namespace sylar::http::detail {

/// Counts over all connections. Thread safety: all calls from any thread.
class HttpTotals {
 public:
  /// Takes `bytes` for bodies. Returns false if that would make more than `most`.
  bool takeBodyBytes(uint64_t bytes, uint64_t most) {
    uint64_t taken = m_body_bytes.load(std::memory_order_relaxed);
    do {
      if (taken > most || bytes > most - taken) return false;
    } while (!m_body_bytes.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
  }
  void giveBodyBytes(uint64_t bytes) { m_body_bytes.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t bodyBytes() const { return m_body_bytes.load(std::memory_order_relaxed); }

  /// Counts a request that the protocol has answered with `status`, 400 to 599, in place of a handler.
  void countRefusal(HttpStatus status) {
    m_refusals.at(static_cast<size_t>(status) - kFirst).fetch_add(1, std::memory_order_relaxed);
  }
  std::map<HttpStatus, uint64_t> refusals() const {
    std::map<HttpStatus, uint64_t> counts;
    for (size_t i = 0; i < m_refusals.size(); ++i) {
      if (const uint64_t count = m_refusals[i].load(std::memory_order_relaxed); count > 0) {
        counts[static_cast<HttpStatus>(kFirst + i)] = count;
      }
    }
    return counts;
  }

 private:
  static constexpr size_t kFirst = 400;

  std::atomic<uint64_t> m_body_bytes{0};
  std::array<std::atomic<uint64_t>, 200> m_refusals{};
};

struct HttpShared {
  HttpLimits limits;
  std::shared_ptr<HttpTotals> totals = std::make_shared<HttpTotals>();
};

/// The part of HttpLimits::max_bodies that a connection has taken. Thread safety: none.
class BodyShare {
 public:
  /// Bytes that each connection has for a body without asking, so that small bodies touch no memory that connections share.
  static constexpr uint64_t kOwn = 4 * 1024;

  explicit BodyShare(const HttpShared& shared) : m_totals(*shared.totals), m_most(shared.limits.max_bodies) {}
  ~BodyShare() { release(); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  /// Makes the share large enough for a body of `bytes`. Returns false and changes nothing if there is no room.
  bool reach(uint64_t bytes) {
    if (bytes <= kOwn + m_taken) return true;
    const uint64_t more = bytes - kOwn - m_taken;
    if (!m_totals.takeBodyBytes(more, m_most)) return false;
    m_taken += more;
    return true;
  }
  void release() {
    if (m_taken == 0) return;
    m_totals.giveBodyBytes(m_taken);
    m_taken = 0;
  }

 private:
  HttpTotals& m_totals;
  const uint64_t m_most;
  uint64_t m_taken = 0;
};

}  // namespace sylar::http::detail
