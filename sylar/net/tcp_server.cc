#include "sylar/tcp_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <sstream>
#include <stdexcept>

#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/net/inherited_listeners.h"
#include "sylar/net/tcp_server_control.h"

namespace sylar {
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
void TcpServer::setIdentity(FiberIdentity identity) { m_impl->identity = identity; }
void TcpServer::setName(const std::string& name) { m_impl->name = name; }
const TcpServerLimits& TcpServer::getLimits() const { return m_impl->limits; }

void TcpServer::setLimits(const TcpServerLimits& limits) {
  if (limits.max_connections == 0 || limits.max_per_peer == 0 || limits.backlog <= 0) {
    throw std::invalid_argument("sylar: max_connections, max_per_peer and backlog of a TcpServer must be at least 1");
  }
  if (limits.listeners < 1 || limits.listeners > 1024) {
    throw std::invalid_argument("sylar: a TcpServer has 1 to 1024 listeners for an address");
  }
  m_impl->limits = limits;
}

void TcpServer::setListenerMaker(std::function<Socket::ptr(const Address::ptr&)> make) {
  m_impl->make_listener = std::move(make);
}

// ---- Beginning and end. -----------------------------------------------------------------------------------------------------

Socket::ptr TcpServer::makeListener(const Address::ptr& addr) {
  Socket::ptr socket = m_impl->make_listener != nullptr ? m_impl->make_listener(addr) : Socket::CreateTCP(addr);
  if (addr->getFamily() == AF_INET6) socket->setOption(IPPROTO_IPV6, IPV6_V6ONLY, int{1});
  return socket;
}

/// Returns a socket that listens on `addr`, which it `shares` with others, or null with errno.
Socket::ptr TcpServer::Impl::listenOn(const Address::ptr& addr, bool shares) {
  if (addr == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  Socket::ptr socket = server.makeListener(addr);
  const int inherited = inherited_listeners::take(*addr);
  const bool adopted = inherited >= 0 && SocketControl::adopt(*socket, inherited);
  if (shares) socket->setOption(SOL_SOCKET, SO_REUSEPORT, int{1});
  const bool bound = adopted || (inherited < 0 && socket->bind(addr));
  if (bound && socket->listen(limits.backlog)) {
    socket->getLocalAddress();  // remembered, for reports when there is no memory for it
    return socket;
  }
  const int error = errno;
  log::error("{}: cannot listen on {}: {}", name, addr->toString(), ::strerrordesc_np(error));
  errno = error;
  return nullptr;
}

/// Adds the sockets that listen on `addr`. Returns false, with errno, if there are not all of them.
bool TcpServer::Impl::listenOn(const Address::ptr& addr, std::vector<Socket::ptr>& sockets) {
  const bool shares = limits.listeners > 1 && std::dynamic_pointer_cast<IPAddress>(addr) != nullptr;
  Address::ptr here = addr;
  for (int i = 0; i < (shares ? limits.listeners : 1); ++i) {
    Socket::ptr socket = listenOn(here, shares);
    if (socket == nullptr) return false;
    here = socket->getLocalAddress();  // has the port if any would do
    sockets.push_back(std::move(socket));
  }
  return true;
}

bool TcpServer::bind(Address::ptr addr) {
  std::vector<Address::ptr> fails;
  return bind(std::vector<Address::ptr>{std::move(addr)}, fails);
}

bool TcpServer::bind(const std::vector<Address::ptr>& addrs, std::vector<Address::ptr>& fails) {
  std::vector<Socket::ptr> sockets;
  int error = 0;
  for (const Address::ptr& addr : addrs) {
    if (m_impl->listenOn(addr, sockets)) continue;
    error = errno;
    fails.push_back(addr);
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
      const auto accept = [self = server.shared_from_this(), listener] {
        const Accepting counted(*self->m_impl);
        self->startAccept(listener);
      };
      IOManager& worker = *server.m_accept_worker;
      scheduled = scheduled && (limits.listeners > 1 ? worker.place(accept) : worker.trySchedule(accept));
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
    const Lock lock(m_impl->mutex);
    if (m_impl->stopping) return;
    ran = !std::exchange(m_impl->stopped, true);
    if (!ran && m_impl->listeners.empty()) return;
    m_impl->stopping = true;
    m_impl->changed.notify_all();  // fibers that wait for room get none
  }
  while (const Socket::ptr listener = m_impl->anyListener()) {
    if (ran) m_impl->acceptRest(*listener);
    m_impl->retire(*listener);
  }
  std::vector<Socket::ptr> clients;
  bool listed = true;
  {
    const Lock lock(m_impl->mutex);
    try {
      clients.reserve(m_impl->counts.open);
    } catch (const std::bad_alloc&) {
      listed = false;
    }
    for (const Impl::Connection* one = listed ? m_impl->connections : nullptr; one != nullptr; one = one->next)
      clients.push_back(one->client);
    m_impl->told = listed;
    m_impl->stopping = false;
    m_impl->changed.notify_all();
  }
  if (!listed) throw std::bad_alloc();
  for (const Socket::ptr& client : clients) endClient(client);
}

/// Returns a listener, or null if there is none any more.
Socket::ptr TcpServer::Impl::anyListener() const {
  const Lock lock(mutex);
  return listeners.empty() ? nullptr : listeners.back();
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

/// Returns true if a connection is open, or may still come although the server was stopped.
bool TcpServer::Impl::isBusy() const { return stopping || counts.open > 0 || (stopped && accepting > 0); }

bool TcpServer::join(Deadline deadline) {
  if (sys::inForkedChild()) return false;
  const Lock lock(m_impl->mutex);
  while (m_impl->isBusy()) {
    if (!m_impl->changed.wait(m_impl->mutex, deadline)) return !m_impl->isBusy();
  }
  return true;
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
  next_report_ns = now_ns + std::chrono::nanoseconds(std::chrono::seconds(1)).count();
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
