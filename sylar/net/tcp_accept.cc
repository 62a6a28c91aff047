// How a TcpServer accepts connections, limits and serves them, and ends those that are idle.
#include <cxxabi.h>
#include <fmt/ostream.h>
#include <linux/tcp.h>  // the C library's tcp_info ends before the counts of bytes

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/net/tcp_server_control.h"
#include "sylar/sched/park.h"
#include "sylar/sched/scheduler_core.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

/// Returns true if a failed accept may succeed later, because the connection or the network failed, or something is short.
/// Source: accept(2).
bool isTransient(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ECONNABORTED:
    case EINTR:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return true;
    default: return false;
  }
}

}  // namespace

/// The time to wait before a failed accept is tried again.
class TcpServer::Impl::Backoff {
 public:
  std::chrono::milliseconds next() { return std::exchange(m_next, std::min(2 * m_next, kLongest)); }
  void reset() { m_next = 1ms; }

 private:
  static constexpr std::chrono::milliseconds kLongest = 512ms;
  std::chrono::milliseconds m_next = 1ms;
};

void TcpServer::startAccept(Socket::ptr sock) {
  constexpr int kAcceptsInARow = 16;  // accepts in a row that did not have to wait; then others run, even in a flood
  Impl::Backoff backoff;
  for (int left = kAcceptsInARow; m_impl->acceptOne(*sock, backoff);) {
    if (--left > 0) continue;
    Fiber::YieldToReady();
    left = kAcceptsInARow;
  }
  if (SocketControl::acceptWaits(*sock)) m_impl->retire(*sock);  // else stop() does, when it has accepted the rest
}

/// Accepts one connection. Returns false if `listener` accepts no more.
bool TcpServer::Impl::acceptOne(Socket& listener, Backoff& backoff) {
  int error = ENOMEM;
  try {
    if (const Socket::ptr client = listener.accept()) {
      backoff.reset();
      serve(client);
      return true;
    }
    error = errno;
  } catch (const std::bad_alloc&) {
  }
  if (!listener.isValid() || this_fiber::cancelled()) return false;
  if (error == EAGAIN || error == ECANCELED) return SocketControl::acceptWaits(listener);  // its timeout, or cancelAccept()
  const bool transient = isTransient(error);
  count(transient ? &TcpServerCounts::accept_errors : &TcpServerCounts::listeners_failed);
  if (!transient || mayReport()) {
    log::error("{}: accept on {} failed{}: {}", name, fmt::streamed(*listener.getLocalAddress()), transient ? "" : " for good",
               ::strerrordesc_np(error));
  }
  return transient && pause(listener, Deadline::after(backoff.next(), waitClock()));
}

/// Waits until `deadline`, or until a connection ends, which may have been what was missing. Returns false if `listener` accepts
/// no more.
bool TcpServer::Impl::pause(const Socket& listener, Deadline deadline) {
  try {
    const Lock lock(mutex);
    return listensOn(listener) && (changed.wait(mutex, deadline) || !this_fiber::cancelled());
  } catch (const std::bad_alloc&) {  // for the deadline
    Fiber::YieldToReady();
    return !this_fiber::cancelled();
  }
}

void TcpServer::Impl::serve(const Socket::ptr& client) {
  count(&TcpServerCounts::accepted);
  std::shared_ptr<Connection> connection;
  try {
    client->setRecvTimeout(static_cast<int64_t>(std::min<uint64_t>(recv_timeout, INT64_MAX)));
    client->setSendTimeout(static_cast<int64_t>(std::min<uint64_t>(send_timeout, INT64_MAX)));
    connection = std::make_shared<Connection>(server.shared_from_this(), client);
    if (!admit(*connection)) return;
    const bool late = connection->late;
    const auto run = [connection] { connection->run(); };
    if (staysWhereAccepted()) {
      (void)coreOf(*server.m_io_worker).schedule(run, static_cast<int>(sys::threadId()), identity);
    } else {
      coreOf(*server.m_io_worker).place(run, identity);
    }
    if (late) server.endClient(client);
  } catch (const std::bad_alloc&) {
    if (connection == nullptr || !connection->admitted) notStarted();
  }
}

/// Waits for room. Returns false if the connection is to be closed.
bool TcpServer::Impl::admit(Connection& connection) {
  const std::optional<PeerKey> peer = limitedPeer(*connection.client, limits.limit_loopback);
  const Lock lock(mutex);
  if (!stopped && counts.open >= limits.max_connections) ++counts.paused;
  while (counts.open >= limits.max_connections) {
    if (stopped || !changed.wait(mutex)) return false;
  }
  if (idle != nullptr) SocketControl::watch(*connection.client);
  if (peer) {
    uint32_t& same = per_peer[*peer];
    if (same >= limits.max_per_peer) {
      ++counts.refused_per_peer;
      return false;
    }
    ++same;
  }
  connection.peer = peer;
  connection.idle = idle;
  connection.admitted = true;
  connection.late = told;
  if (idle != nullptr) idle->add(SocketControl::watched(*connection.client).entry, connection.client);  // before stop() sees it
  connection.next = std::exchange(connections, &connection);
  if (connection.next != nullptr) connection.next->prev = &connection;
  ++counts.open;
  return true;
}

void TcpServer::Impl::ended(Connection& connection) {
  const Lock lock(mutex);
  (connection.prev == nullptr ? connections : connection.prev->next) = connection.next;
  if (connection.next != nullptr) connection.next->prev = connection.prev;
  if (connection.peer) {
    const auto same = per_peer.find(*connection.peer);
    if (--same->second == 0) per_peer.erase(same);
  }
  --counts.open;
  changed.notify_all();
}

/// Accepts the connections that are in the kernel's queue now, but in a flood only as many as the queue can hold.
void TcpServer::Impl::acceptRest(Socket& listener) {
  SocketControl::endWaiting(listener);
  try {
    for (int left = limits.backlog; left >= 0; --left) {
      const Socket::ptr client = listener.accept();
      if (client == nullptr) return;
      serve(client);
    }
  } catch (const std::bad_alloc&) {
  }
}

// ---- One connection. --------------------------------------------------------------------------------------------------------

void TcpServer::Impl::Connection::run() {
  began = true;
  try {
    server->handleClient(client);
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& exception) {
    failed(exception.what());
  } catch (...) {
    failed("an exception of unknown type");
  }
  end();
}

void TcpServer::Impl::Connection::failed(const char* what) const {
  server->m_impl->count(&TcpServerCounts::exceptions);
  log::error("{}: the handler of {} failed: {}", server->m_impl->name, fmt::streamed(*client), what);
}

void TcpServer::Impl::Connection::end() {
  client->close();  // first, so that a waiter for room or for a descriptor finds it
  if (!std::exchange(admitted, false)) return;
  server->m_impl->ended(*this);
  if (!began) server->m_impl->notStarted();
}

// ---- The idle timeout. ------------------------------------------------------------------------------------------------------

std::shared_ptr<IdleList<Socket>> TcpServer::Impl::makeIdleList() {
  if (idle_timeout == 0) return nullptr;
  const std::chrono::milliseconds timeout(std::min<uint64_t>(idle_timeout, std::chrono::milliseconds(24h * 365).count()));
  const auto end_idle = [weak = server.weak_from_this(), timeout](const Socket::ptr& client) {
    if (const TcpServer::ptr alive = weak.lock()) alive->m_impl->endIdle(client, timeout);
  };
  return std::make_shared<IdleList<Socket>>(*server.m_io_worker, timeout, end_idle,
                                            std::min<std::chrono::nanoseconds>(timeout / 128, 10ms));
}

/// Ends `client`, whose calls have moved no byte for `timeout`. It goes on if the kernel knows of moved bytes, either of a send
/// that is still in progress or of calls that did not touch the entry. The kernel counts time in ticks. To a dead peer the same
/// bytes are sent again and again, so only bytes that the peer confirms count as sent.
void TcpServer::Impl::endIdle(const Socket::ptr& client, std::chrono::milliseconds timeout) {
  constexpr auto kTick = 10ms;
  tcp_info info{};
  if (client->getType() == Socket::TCP && client->getFamily() != Socket::UNIX && client->getOption(IPPROTO_TCP, TCP_INFO, info)) {
    auto& watched = SocketControl::watched(*client);
    const uint64_t moved_bytes = info.tcpi_bytes_acked + info.tcpi_bytes_received;
    const bool moved = std::exchange(watched.moved_bytes, moved_bytes) != moved_bytes;
    const std::chrono::milliseconds still(
        std::min(std::max(info.tcpi_last_data_sent, info.tcpi_last_ack_recv), info.tcpi_last_data_recv));
    if (moved && still + kTick < timeout) return watched.entry.touch();
  }
  count(&TcpServerCounts::idle_closed);  // first, so that a peer that sees the end finds it counted
  if (!client->close()) count(&TcpServerCounts::idle_closed, -1);
}

}  // namespace sylar
