// Internal. The state that the connections of a server share; each of them keeps it alive.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/http/http_names.h"
#include "sylar/http/limits.h"
#include "sylar/net/peer_key.h"

namespace sylar::http::detail {

/// Counts over all connections. Thread safety: all calls from any thread.
class HttpTotals {
 public:
  /// Takes `bytes` for bodies of `peer`. Returns false if that would be more than the limits allow. Throws std::bad_alloc.
  bool takeBodyBytes(uint64_t bytes, const std::optional<PeerKey>& peer, const HttpLimits& limits) {
    const Lock lock(m_mutex);
    const auto fits = [bytes](uint64_t taken, uint64_t most) { return taken <= most && bytes <= most - taken; };
    if (!fits(bodyBytes(), limits.max_bodies)) return false;
    if (peer) {
      const auto of_peer = m_of_peers.try_emplace(*peer).first;
      if (!fits(of_peer->second, limits.max_peer_bodies)) {
        if (of_peer->second == 0) m_of_peers.erase(of_peer);
        return false;
      }
      of_peer->second += bytes;
    }
    m_body_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }
  void giveBodyBytes(uint64_t bytes, const std::optional<PeerKey>& peer) {
    const Lock lock(m_mutex);
    m_body_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    if (!peer) return;
    const auto of_peer = m_of_peers.find(*peer);
    if ((of_peer->second -= bytes) == 0) m_of_peers.erase(of_peer);
  }
  /// True if HttpLimits::max_peer_bodies holds for this host, too.
  std::atomic<bool> limit_loopback{false};

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

  OsMutex m_mutex;
  std::atomic<uint64_t> m_body_bytes{0};  // changes under the lock
  std::map<PeerKey, uint64_t> m_of_peers SYLAR_GUARDED_BY(m_mutex);
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

  /// Both must outlive it.
  BodyShare(const HttpShared& shared, const Socket& client) : m_shared(shared), m_client(client) {}
  ~BodyShare() { release(); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  /// Makes the share large enough for a body of `bytes`. Returns false and changes nothing if there is no room. Throws
  /// std::bad_alloc.
  bool reach(uint64_t bytes) {
    if (bytes <= kOwn + m_taken) return true;
    const uint64_t more = bytes - kOwn - m_taken;
    if (!m_shared.totals->takeBodyBytes(more, peer(), m_shared.limits)) return false;
    m_taken += more;
    return true;
  }
  /// Returns the rate at which the body must arrive now, in bytes per second.
  uint64_t leastRate() const {
    const HttpLimits& limits = m_shared.limits;
    const bool counts = m_taken > 0 && m_shared.totals->bodyBytes() > limits.max_bodies / 2;
    return counts ? std::max(limits.min_body_rate, limits.short_body_rate) : limits.min_body_rate;
  }
  void release() {
    if (m_taken == 0) return;
    m_shared.totals->giveBodyBytes(m_taken, peer());
    m_taken = 0;
  }

 private:
  std::optional<PeerKey> peer() const {
    return limitedPeer(m_client, m_shared.totals->limit_loopback.load(std::memory_order_relaxed));
  }

  const HttpShared& m_shared;
  const Socket& m_client;
  uint64_t m_taken = 0;
};

}  // namespace sylar::http::detail
