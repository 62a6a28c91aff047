// Internal. For whom a connection counts where each peer has a limit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sylar/api.h"
#include "sylar/base/internal.h"

namespace sylar {

class Socket;

namespace detail {

/// An IPv4 address, or an IPv6 network.
using PeerKey = std::array<uint8_t, 16>;

/// Returns the peer for whose limits `client` counts: its IPv4 address, or its IPv6 /64, since a peer that has one address there
/// has all of them. Returns nothing if no limit concerns it: on a Unix socket, and from this host unless `limit_loopback`.
SYLAR_API std::optional<PeerKey> limitedPeer(const Socket& client, bool limit_loopback);

}  // namespace detail
}  // namespace sylar
