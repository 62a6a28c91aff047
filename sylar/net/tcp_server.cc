#include "sylar/net/tcp_server.h"

#include <cxxabi.h>
#include <fmt/ostream.h>
#include <linux/tcp.h>  // the C library's tcp_info ends before the counts of bytes

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/sched/park.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

/// Whether a failed accept may succeed later: the connection or the network failed, or something is short. Source: accept(2).
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

/// Whose limit `client` counts for: its IPv4 address, or its IPv6 network; whoever has one address there has all of them.
/// Nothing: no limit concerns it.
std::optional<std::array<uint8_t, 16>> limitedPeer(const Socket& client, bool limit_loopback) {
  const Address::ptr address = client.getRemoteAddress();
  const auto* const ip = dynamic_cast<const IPAddress*>(address.get());
  if (ip == nullptr || (ip->isLoopback() && !limit_loopback)) return std::nullopt;
  std::array<uint8_t, 16> peer{};
  if (ip->getFamily() == AF_INET) {
    peer[10] = peer[11] = 0xff;  // as IPv6 writes it
    std::memcpy(&peer[12], &reinterpret_cast<const sockaddr_in*>(ip->getAddr())->sin_addr, 4);
    return peer;
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(ip->getAddr())->sin6_addr;
  std::memcpy(peer.data(), v6.s6_addr, IN6_IS_ADDR_V4MAPPED(&v6) ? 16 : 8);
  return peer;
}

}  // namespace

/// How long to wait before an accept that failed is tried again.
class TcpServer::Backoff {
 public:
  std::chrono::milliseconds next() { return std::exchange(m_next, std::min(2 * m_next, kLongest)); }
  void reset() { m_next = 1ms; }

 private:
  static constexpr std::chrono::milliseconds kLongest = 512ms;
  std::chrono::milliseconds m_next = 1ms;
};

/// From accept to close. It ends with its scope, also if its fiber never ran.
struct TcpServer::Connection {
  Connection(TcpServer::ptr its_server, Socket::ptr its_client) : server(std::move(its_server)), client(std::move(its_client)) {}
  ~Connection() { end(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run() {
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

  void failed(const char* what) const {
    server->count(&TcpServerCounts::exceptions);
    log::error("{}: the handler of {} failed: {}", server->m_name, fmt::streamed(*client), what);
  }

  void end() {
    client->close();  // first: whoever waits for room, or for a descriptor, finds it
    if (!std::exchange(admitted, false)) return;
    server->ended(*this);
    if (!began) server->notStarted();
  }

  const TcpServer::ptr server;
  const Socket::ptr client;
  bool began = false;
  // Under the server's lock:
  bool admitted = false;
  std::optional<Peer> peer;                // counted for it
  std::shared_ptr<IdleList<Socket>> idle;  // the server may have another by now
  Connection* next = nullptr;
  Connection* prev = nullptr;
};

TcpServer::TcpServer(IOManager* worker, IOManager* io_worker, IOManager* accept_worker)
    : m_worker(worker), m_io_worker(io_worker), m_accept_worker(accept_worker) {
  if (worker == nullptr || io_worker == nullptr || accept_worker == nullptr) {
    throw std::invalid_argument("sylar: a TcpServer needs IOManagers: make it in a fiber of one, or name them");
  }
}

TcpServer::~TcpServer() = default;

void TcpServer::setLimits(const TcpServerLimits& limits) {
  if (limits.max_connections == 0 || limits.max_per_peer == 0 || limits.backlog <= 0) {
    throw std::invalid_argument("sylar: max_connections, max_per_peer and backlog of a TcpServer must be at least 1");
  }
  m_limits = limits;
}

// ---- Beginning and end. -----------------------------------------------------------------------------------------------------

Socket::ptr TcpServer::listenOn(const Address::ptr& addr) {
  if (addr == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  Socket::ptr socket = makeListener(addr);
  if (socket->bind(addr) && socket->listen(m_limits.backlog)) {
    socket->getLocalAddress();  // remembered, for reports that have no memory for it
    return socket;
  }
  const int error = errno;
  log::error("{}: cannot listen on {}: {}", m_name, addr->toString(), ::strerrordesc_np(error));
  errno = error;
  return nullptr;
}

bool TcpServer::bind(Address::ptr addr) {
  std::vector<Address::ptr> fails;
  return bind(std::vector<Address::ptr>{std::move(addr)}, fails);
}

bool TcpServer::bind(const std::vector<Address::ptr>& addrs, std::vector<Address::ptr>& fails) {
  std::vector<Socket::ptr> sockets;
  int error = 0;
  for (const Address::ptr& addr : addrs) {
    if (Socket::ptr socket = listenOn(addr)) {
      sockets.push_back(std::move(socket));
    } else {
      error = errno;
      fails.push_back(addr);
    }
  }
  if (error != 0) {
    errno = error;
    return false;
  }
  bool runs;
  {
    const Lock lock(m_mutex);
    m_listeners.insert(m_listeners.end(), sockets.begin(), sockets.end());
    runs = !m_stopped;
  }
  if (!runs || acceptOn(sockets)) return true;
  for (const Socket::ptr& socket : sockets) retire(*socket);
  fails = addrs;
  return false;
}

bool TcpServer::start() {
  std::vector<Socket::ptr> listeners;
  std::shared_ptr<IdleList<Socket>> idle;
  try {
    idle = makeIdleList();
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return false;
  }
  {
    const Lock lock(m_mutex);
    listeners = m_listeners;
    if (!std::exchange(m_stopped, false)) return true;
    m_idle.swap(idle);
  }
  if (acceptOn(listeners)) return true;
  stop();
  return false;
}

/// False: not all of them could be scheduled.
bool TcpServer::acceptOn(const std::vector<Socket::ptr>& listeners) {
  bool scheduled = true;
  try {
    for (const Socket::ptr& listener : listeners) {
      scheduled =
          scheduled && m_accept_worker->trySchedule([self = shared_from_this(), listener] { self->startAccept(listener); });
    }
  } catch (const std::bad_alloc&) {
    scheduled = false;
    errno = ENOMEM;
  }
  return scheduled;
}

void TcpServer::stop() {
  std::vector<Socket::ptr> listeners;
  {
    Lock lock(m_mutex);
    if (std::exchange(m_stopped, true) && m_listeners.empty()) return;
    listeners.swap(m_listeners);
    m_changes.notifyAll(lock);
  }
  for (const Socket::ptr& listener : listeners) listener->close();
  std::vector<Socket::ptr> clients;  // all that there will be: without its listener none is admitted
  {
    const Lock lock(m_mutex);
    clients.reserve(m_counts.open);
    for (const Connection* one = m_connections; one != nullptr; one = one->next) clients.push_back(one->client);
  }
  for (const Socket::ptr& client : clients) endClient(client);
}

bool TcpServer::join(Deadline deadline) {
  const Lock lock(m_mutex);
  while (m_counts.open > 0) {
    if (m_changes.wait(m_mutex, deadline) != WakeReason::kReady) return m_counts.open == 0;
  }
  return true;
}

// ---- Accepting. -------------------------------------------------------------------------------------------------------------

void TcpServer::startAccept(Socket::ptr sock) {
  constexpr int kTurn = 16;  // accepts in a row that did not have to wait: then others have their turn, in a flood, too
  Backoff backoff;
  for (int left = kTurn; acceptOne(*sock, backoff);) {
    if (--left > 0) continue;
    Fiber::YieldToReady();
    left = kTurn;
  }
  retire(*sock);
}

/// False: `listener` accepts no more.
bool TcpServer::acceptOne(Socket& listener, Backoff& backoff) {
  int error = ENOMEM;
  try {
    if (const Socket::ptr client = listener.accept()) {
      backoff.reset();
      serve(listener, client);
      return true;
    }
    error = errno;
  } catch (const std::bad_alloc&) {
  }
  if (!listener.isValid() || this_fiber::cancelled()) return false;
  if (error == EAGAIN || error == ECANCELED) return true;  // a timeout of the listener, or cancelAccept(): of that call
  const bool transient = isTransient(error);
  count(transient ? &TcpServerCounts::accept_errors : &TcpServerCounts::listeners_failed);
  if (!transient || mayReport()) {
    log::error("{}: accept on {} failed{}: {}", m_name, fmt::streamed(*listener.getLocalAddress()), transient ? "" : " for good",
               ::strerrordesc_np(error));
  }
  return transient && pause(listener, Deadline::after(backoff.next(), waitClock()));
}

/// Until `deadline`, or until a connection ends, which may have been what was missing. False: `listener` accepts no more.
bool TcpServer::pause(const Socket& listener, Deadline deadline) {
  const Lock lock(m_mutex);
  return listensOn(listener) && m_changes.wait(m_mutex, deadline) != WakeReason::kCanceled;
}

void TcpServer::serve(const Socket& listener, const Socket::ptr& client) {
  count(&TcpServerCounts::accepted);
  std::shared_ptr<Connection> connection;
  try {
    client->setRecvTimeout(static_cast<int64_t>(std::min<uint64_t>(m_recv_timeout, INT64_MAX)));
    client->setSendTimeout(static_cast<int64_t>(std::min<uint64_t>(m_send_timeout, INT64_MAX)));
    connection = std::make_shared<Connection>(shared_from_this(), client);
    if (!admit(listener, *connection)) return;
    m_io_worker->place([connection] { connection->run(); });
  } catch (const std::bad_alloc&) {
    if (connection == nullptr || !connection->admitted) notStarted();
  }
}

/// Waits for room. False: it is to be closed.
bool TcpServer::admit(const Socket& listener, Connection& connection) {
  const std::optional<Peer> peer = limitedPeer(*connection.client, m_limits.limit_loopback);
  const Lock lock(m_mutex);
  if (m_counts.open >= m_limits.max_connections) ++m_counts.paused;
  while (m_counts.open >= m_limits.max_connections) {
    if (!listensOn(listener) || m_changes.wait(m_mutex, Deadline::never()) == WakeReason::kCanceled) return false;
  }
  if (!listensOn(listener)) return false;
  if (m_idle != nullptr) connection.client->m_watched = std::make_unique<Socket::Watched>();
  if (peer) {
    uint32_t& same = m_per_peer[*peer];
    if (same >= m_limits.max_per_peer) {
      ++m_counts.refused_per_peer;
      return false;
    }
    ++same;
  }
  connection.peer = peer;
  connection.idle = m_idle;
  connection.admitted = true;
  if (m_idle != nullptr) m_idle->add(connection.client->m_watched->entry, connection.client);  // before stop() sees it
  connection.next = std::exchange(m_connections, &connection);
  if (connection.next != nullptr) connection.next->prev = &connection;
  ++m_counts.open;
  return true;
}

void TcpServer::ended(Connection& connection) {
  Lock lock(m_mutex);
  (connection.prev == nullptr ? m_connections : connection.prev->next) = connection.next;
  if (connection.next != nullptr) connection.next->prev = connection.prev;
  if (connection.peer) {
    const auto same = m_per_peer.find(*connection.peer);
    if (--same->second == 0) m_per_peer.erase(same);
  }
  --m_counts.open;
  m_changes.notifyAll(lock);
}

/// Nobody accepts there any more.
void TcpServer::retire(Socket& listener) {
  {
    const Lock lock(m_mutex);
    std::erase_if(m_listeners, [&](const Socket::ptr& one) { return one.get() == &listener; });
  }
  listener.close();
}

bool TcpServer::listensOn(const Socket& listener) const {
  return std::ranges::find(m_listeners, &listener, &Socket::ptr::get) != m_listeners.end();
}

// ---- The idle timeout. ------------------------------------------------------------------------------------------------------

std::shared_ptr<IdleList<Socket>> TcpServer::makeIdleList() {
  if (m_idle_timeout == 0) return nullptr;
  const std::chrono::milliseconds timeout(std::min<uint64_t>(m_idle_timeout, std::chrono::milliseconds(24h * 365).count()));
  const auto end_idle = [server = weak_from_this(), timeout](const Socket::ptr& client) {
    if (const TcpServer::ptr alive = server.lock()) alive->endIdle(client, timeout);
  };
  return std::make_shared<IdleList<Socket>>(*m_io_worker, timeout, end_idle,
                                            std::min<std::chrono::nanoseconds>(timeout / 128, 10ms));
}

/// No call of `client` has moved a byte for that long. The kernel may know of some all the same: of a send that is still under
/// way, or of calls that nobody noted. It counts in ticks. A dead peer is sent the same again and again: sent is what it
/// confirms.
void TcpServer::endIdle(const Socket::ptr& client, std::chrono::milliseconds timeout) {
  constexpr auto kTick = 10ms;
  tcp_info info{};
  if (client->getType() == Socket::TCP && client->getFamily() != Socket::UNIX && client->getOption(IPPROTO_TCP, TCP_INFO, info)) {
    Socket::Watched& watched = *client->m_watched;
    const uint64_t moved_bytes = info.tcpi_bytes_acked + info.tcpi_bytes_received;
    const bool moved = std::exchange(watched.moved_bytes, moved_bytes) != moved_bytes;
    const std::chrono::milliseconds still(
        std::min(std::max(info.tcpi_last_data_sent, info.tcpi_last_ack_recv), info.tcpi_last_data_recv));
    if (moved && still + kTick < timeout) return watched.entry.touch();
  }
  count(&TcpServerCounts::idle_closed);  // first: who sees the end, sees it counted
  if (!client->close()) count(&TcpServerCounts::idle_closed, -1);
}

// ---- Reports. ---------------------------------------------------------------------------------------------------------------

void TcpServer::count(uint64_t TcpServerCounts::*what, int by) {
  const Lock lock(m_mutex);
  m_counts.*what += static_cast<uint64_t>(by);
}

/// True at most once a second: for reports of what may come in floods.
bool TcpServer::mayReport() {
  const int64_t now_ns = steadyClock().nowNs();
  const Lock lock(m_mutex);
  if (now_ns < m_next_report_ns) return false;
  m_next_report_ns = now_ns + std::chrono::nanoseconds(1s).count();
  return true;
}

void TcpServer::notStarted() {
  count(&TcpServerCounts::not_started);
  if (mayReport()) log::error("{}: a connection could not be started: no memory, or its IOManager has stopped", m_name);
}

bool TcpServer::isStop() const {
  const Lock lock(m_mutex);
  return m_stopped;
}

TcpServerCounts TcpServer::getCounts() const {
  const Lock lock(m_mutex);
  return m_counts;
}

std::vector<Socket::ptr> TcpServer::getSocks() const {
  const Lock lock(m_mutex);
  return m_listeners;
}

std::string TcpServer::toString(const std::string& prefix) const {
  std::ostringstream out;
  out << prefix << "[TcpServer name=" << m_name << " io_worker=" << m_io_worker->getName()
      << " accept_worker=" << m_accept_worker->getName() << " recv_timeout=" << m_recv_timeout << "]\n";
  for (const Socket::ptr& socket : getSocks()) out << prefix << "    " << *socket << "\n";
  return out.str();
}

void TcpServer::handleClient(Socket::ptr /*client*/) {}

}  // namespace sylar
