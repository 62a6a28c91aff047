#include "sylar/tcp_server.h"

#include <cxxabi.h>
#include <fmt/ostream.h>
#include <linux/tcp.h>  // the C library's tcp_info ends before the counts of bytes

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/net/fiber_condition.h"
#include "sylar/net/socket_control.h"
#include "sylar/sched/park.h"

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

/// Returns the peer for whose limit `client` counts: its IPv4 address, or its IPv6 network, since a peer that has one address
/// there has all of them. Returns nothing if no limit concerns it.
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

struct TcpServer::Impl {
  struct Connection;
  class Accepting;
  class Backoff;
  using Peer = std::array<uint8_t, 16>;

  explicit Impl(TcpServer& its_server) : server(its_server) {}

  Socket::ptr listenOn(const Address::ptr& addr);
  bool acceptOn(const std::vector<Socket::ptr>& sockets);
  Socket::ptr anyListener() const;
  bool listensOn(const Socket& listener) const SYLAR_REQUIRES(mutex);
  bool isBusy() const SYLAR_REQUIRES(mutex);
  void retire(Socket& listener);

  bool acceptOne(Socket& listener, Backoff& backoff);
  void acceptRest(Socket& listener);
  bool pause(const Socket& listener, Deadline deadline);
  void serve(const Socket::ptr& client);
  bool admit(Connection& connection);
  void ended(Connection& connection);

  std::shared_ptr<IdleList<Socket>> makeIdleList();
  void endIdle(const Socket::ptr& client, std::chrono::milliseconds timeout);

  void count(uint64_t TcpServerCounts::*what, int by = 1);
  bool mayReport();
  void notStarted();

  TcpServer& server;
  std::string name = "sylar";
  uint64_t recv_timeout = 120'000;
  uint64_t send_timeout = 30'000;
  uint64_t idle_timeout = 0;
  TcpServerLimits limits;

  mutable OsMutex mutex;
  FiberCondition changed;  // of listeners and connections
  bool stopped SYLAR_GUARDED_BY(mutex) = true;
  bool stopping SYLAR_GUARDED_BY(mutex) = false;   // a call of stop() is running
  bool told SYLAR_GUARDED_BY(mutex) = false;       // stop() has listed whom it tells; later ones are told one by one
  uint32_t accepting SYLAR_GUARDED_BY(mutex) = 0;  // running fibers that accept
  std::vector<Socket::ptr> listeners SYLAR_GUARDED_BY(mutex);
  std::shared_ptr<IdleList<Socket>> idle SYLAR_GUARDED_BY(mutex);  // of connections admitted since start(); null if no timeout
  Connection* connections SYLAR_GUARDED_BY(mutex) = nullptr;
  std::map<Peer, uint32_t> per_peer SYLAR_GUARDED_BY(mutex);  // without peers that have no limit
  TcpServerCounts counts SYLAR_GUARDED_BY(mutex);
  int64_t next_report_ns SYLAR_GUARDED_BY(mutex) = 0;
};

/// The time to wait before a failed accept is tried again.
class TcpServer::Impl::Backoff {
 public:
  std::chrono::milliseconds next() { return std::exchange(m_next, std::min(2 * m_next, kLongest)); }
  void reset() { m_next = 1ms; }

 private:
  static constexpr std::chrono::milliseconds kLongest = 512ms;
  std::chrono::milliseconds m_next = 1ms;
};

/// A connection from accept to close. It ends with its scope, even if its fiber never ran.
struct TcpServer::Impl::Connection {
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
    server->m_impl->count(&TcpServerCounts::exceptions);
    log::error("{}: the handler of {} failed: {}", server->m_impl->name, fmt::streamed(*client), what);
  }

  void end() {
    client->close();  // first, so that a waiter for room or for a descriptor finds it
    if (!std::exchange(admitted, false)) return;
    server->m_impl->ended(*this);
    if (!began) server->m_impl->notStarted();
  }

  const TcpServer::ptr server;
  const Socket::ptr client;
  bool began = false;
  bool late = false;  // admitted after stop() had told the others
  // Under the server's lock:
  bool admitted = false;
  std::optional<Peer> peer;                // the peer for which it counts
  std::shared_ptr<IdleList<Socket>> idle;  // the server may have another by now
  Connection* next = nullptr;
  Connection* prev = nullptr;
};

/// Counts a fiber that accepts, for join(): a socket that it has just accepted may still become a connection.
class TcpServer::Impl::Accepting {
 public:
  explicit Accepting(Impl& impl) : m_impl(impl) {
    const Lock lock(m_impl.mutex);
    ++m_impl.accepting;
  }
  ~Accepting() {
    Lock lock(m_impl.mutex);
    --m_impl.accepting;
    m_impl.changed.notifyAll(lock);
  }
  Accepting(const Accepting&) = delete;
  Accepting& operator=(const Accepting&) = delete;

 private:
  Impl& m_impl;
};

TcpServer::TcpServer(IOManager* worker, IOManager* io_worker, IOManager* accept_worker)
    : m_worker(worker), m_io_worker(io_worker), m_accept_worker(accept_worker), m_impl(std::make_unique<Impl>(*this)) {
  if (worker == nullptr || io_worker == nullptr || accept_worker == nullptr) {
    throw std::invalid_argument("sylar: a TcpServer needs IOManagers: make it in a fiber of one, or name them");
  }
}

TcpServer::~TcpServer() = default;

uint64_t TcpServer::getRecvTimeout() const { return m_impl->recv_timeout; }
void TcpServer::setRecvTimeout(uint64_t ms) { m_impl->recv_timeout = ms; }
uint64_t TcpServer::getSendTimeout() const { return m_impl->send_timeout; }
void TcpServer::setSendTimeout(uint64_t ms) { m_impl->send_timeout = ms; }
uint64_t TcpServer::getIdleTimeout() const { return m_impl->idle_timeout; }
void TcpServer::setIdleTimeout(uint64_t ms) { m_impl->idle_timeout = ms; }
std::string TcpServer::getName() const { return m_impl->name; }
void TcpServer::setName(const std::string& name) { m_impl->name = name; }
const TcpServerLimits& TcpServer::getLimits() const { return m_impl->limits; }

void TcpServer::setLimits(const TcpServerLimits& limits) {
  if (limits.max_connections == 0 || limits.max_per_peer == 0 || limits.backlog <= 0) {
    throw std::invalid_argument("sylar: max_connections, max_per_peer and backlog of a TcpServer must be at least 1");
  }
  m_impl->limits = limits;
}

// ---- Beginning and end. -----------------------------------------------------------------------------------------------------

Socket::ptr TcpServer::makeListener(const Address::ptr& addr) {
  Socket::ptr socket = Socket::CreateTCP(addr);
  if (addr->getFamily() == AF_INET6) socket->setOption(IPPROTO_IPV6, IPV6_V6ONLY, int{1});
  return socket;
}

Socket::ptr TcpServer::Impl::listenOn(const Address::ptr& addr) {
  if (addr == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  Socket::ptr socket = server.makeListener(addr);
  if (socket->bind(addr) && socket->listen(limits.backlog)) {
    socket->getLocalAddress();  // remembered, for reports when there is no memory for it
    return socket;
  }
  const int error = errno;
  log::error("{}: cannot listen on {}: {}", name, addr->toString(), ::strerrordesc_np(error));
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
    if (Socket::ptr socket = m_impl->listenOn(addr)) {
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
    const Lock lock(m_impl->mutex);
    m_impl->listeners.insert(m_impl->listeners.end(), sockets.begin(), sockets.end());
    runs = !m_impl->stopped;
  }
  if (!runs || m_impl->acceptOn(sockets)) return true;
  for (const Socket::ptr& socket : sockets) m_impl->retire(*socket);
  fails = addrs;
  return false;
}

bool TcpServer::start() {
  if (sys::inForkedChild()) {
    errno = ECANCELED;
    return false;
  }
  std::vector<Socket::ptr> listeners;
  std::shared_ptr<IdleList<Socket>> idle;
  try {
    idle = m_impl->makeIdleList();
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return false;
  }
  {
    const Lock lock(m_impl->mutex);
    if (m_impl->stopping) {
      errno = EALREADY;
      return false;
    }
    listeners = m_impl->listeners;
    if (!m_impl->stopped) return true;
    if (!listeners.empty()) {
      m_impl->stopped = m_impl->told = false;
      m_impl->idle.swap(idle);
    }
  }
  if (listeners.empty()) {
    log::error("{}: cannot start: it is bound to no address", m_impl->name);
    errno = EDESTADDRREQ;
    return false;
  }
  if (m_impl->acceptOn(listeners)) return true;
  stop();
  return false;
}

/// Returns false if not all of them could be scheduled.
bool TcpServer::Impl::acceptOn(const std::vector<Socket::ptr>& sockets) {
  bool scheduled = true;
  try {
    for (const Socket::ptr& listener : sockets) {
      scheduled = scheduled && server.m_accept_worker->trySchedule([self = server.shared_from_this(), listener] {
        const Accepting counted(*self->m_impl);
        self->startAccept(listener);
      });
    }
  } catch (const std::bad_alloc&) {
    scheduled = false;
    errno = ENOMEM;
  }
  return scheduled;
}

void TcpServer::stop() {
  if (sys::inForkedChild()) return;  // its connections belong to the parent
  bool ran;
  {
    Lock lock(m_impl->mutex);
    if (m_impl->stopping) return;
    ran = !std::exchange(m_impl->stopped, true);
    if (!ran && m_impl->listeners.empty()) return;
    m_impl->stopping = true;
    m_impl->changed.notifyAll(lock);  // fibers that wait for room get none
  }
  while (const Socket::ptr listener = m_impl->anyListener()) {
    if (ran) m_impl->acceptRest(*listener);
    m_impl->retire(*listener);
  }
  std::vector<Socket::ptr> clients;
  bool listed = true;
  {
    Lock lock(m_impl->mutex);
    try {
      clients.reserve(m_impl->counts.open);
    } catch (const std::bad_alloc&) {
      listed = false;
    }
    for (const Impl::Connection* one = listed ? m_impl->connections : nullptr; one != nullptr; one = one->next)
      clients.push_back(one->client);
    m_impl->told = listed;
    m_impl->stopping = false;
    m_impl->changed.notifyAll(lock);
  }
  if (!listed) throw std::bad_alloc();
  for (const Socket::ptr& client : clients) endClient(client);
}

/// Returns a listener, or null if there is none any more.
Socket::ptr TcpServer::Impl::anyListener() const {
  const Lock lock(mutex);
  return listeners.empty() ? nullptr : listeners.back();
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

/// Returns true if a connection is open, or may still come although the server was stopped.
bool TcpServer::Impl::isBusy() const { return stopping || counts.open > 0 || (stopped && accepting > 0); }

bool TcpServer::join(Deadline deadline) {
  if (sys::inForkedChild()) return false;
  const Lock lock(m_impl->mutex);
  while (m_impl->isBusy()) {
    if (m_impl->changed.wait(m_impl->mutex, deadline) != WakeReason::kReady) return !m_impl->isBusy();
  }
  return true;
}

// ---- Accepting. -------------------------------------------------------------------------------------------------------------

void TcpServer::startAccept(Socket::ptr sock) {
  constexpr int kAcceptsInARow = 16;  // accepts in a row that did not have to wait; then others run, even in a flood
  Impl::Backoff backoff;
  for (int left = kAcceptsInARow; m_impl->acceptOne(*sock, backoff);) {
    if (--left > 0) continue;
    Fiber::YieldToReady();
    left = kAcceptsInARow;
  }
  m_impl->retire(*sock);
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
  const Lock lock(mutex);
  return listensOn(listener) && changed.wait(mutex, deadline) != WakeReason::kCanceled;
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
    server.m_io_worker->place([connection] { connection->run(); });
    if (late) server.endClient(client);
  } catch (const std::bad_alloc&) {
    if (connection == nullptr || !connection->admitted) notStarted();
  }
}

/// Waits for room. Returns false if the connection is to be closed.
bool TcpServer::Impl::admit(Connection& connection) {
  const std::optional<Peer> peer = limitedPeer(*connection.client, limits.limit_loopback);
  const Lock lock(mutex);
  if (!stopped && counts.open >= limits.max_connections) ++counts.paused;
  while (counts.open >= limits.max_connections) {
    if (stopped || changed.wait(mutex, Deadline::never()) == WakeReason::kCanceled) return false;
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
  Lock lock(mutex);
  (connection.prev == nullptr ? connections : connection.prev->next) = connection.next;
  if (connection.next != nullptr) connection.next->prev = connection.prev;
  if (connection.peer) {
    const auto same = per_peer.find(*connection.peer);
    if (--same->second == 0) per_peer.erase(same);
  }
  --counts.open;
  changed.notifyAll(lock);
}

/// Removes `listener` from the list and closes it.
void TcpServer::Impl::retire(Socket& listener) {
  {
    const Lock lock(mutex);
    std::erase_if(listeners, [&](const Socket::ptr& one) { return one.get() == &listener; });
  }
  listener.close();
}

bool TcpServer::Impl::listensOn(const Socket& listener) const {
  return std::ranges::find(listeners, &listener, &Socket::ptr::get) != listeners.end();
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

// ---- Reports. ---------------------------------------------------------------------------------------------------------------

void TcpServer::Impl::count(uint64_t TcpServerCounts::*what, int by) {
  const Lock lock(mutex);
  counts.*what += static_cast<uint64_t>(by);
}

/// Returns true at most once per second, for reports of what may come in floods.
bool TcpServer::Impl::mayReport() {
  const int64_t now_ns = steadyClock().nowNs();
  const Lock lock(mutex);
  if (now_ns < next_report_ns) return false;
  next_report_ns = now_ns + std::chrono::nanoseconds(1s).count();
  return true;
}

void TcpServer::Impl::notStarted() {
  count(&TcpServerCounts::not_started);
  if (mayReport()) log::error("{}: a connection could not be started: no memory, or its IOManager has stopped", name);
}

bool TcpServer::isStop() const {
  const Lock lock(m_impl->mutex);
  return m_impl->stopped;
}

TcpServerCounts TcpServer::getCounts() const {
  const Lock lock(m_impl->mutex);
  return m_impl->counts;
}

std::vector<Socket::ptr> TcpServer::getSocks() const {
  const Lock lock(m_impl->mutex);
  return m_impl->listeners;
}

std::string TcpServer::toString(const std::string& prefix) const {
  std::ostringstream out;
  out << prefix << "[TcpServer name=" << m_impl->name << " io_worker=" << m_io_worker->getName()
      << " accept_worker=" << m_accept_worker->getName() << " recv_timeout=" << m_impl->recv_timeout << "]\n";
  for (const Socket::ptr& socket : getSocks()) out << prefix << "    " << *socket << "\n";
  return out.str();
}

void TcpServer::handleClient(Socket::ptr /*client*/) {}

}  // namespace sylar
