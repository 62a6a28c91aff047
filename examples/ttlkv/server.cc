#include "server.h"

#include <chrono>
#include <string_view>
#include <utility>

namespace ttlkv {

namespace {
// A connection that is touched again within this time is not moved in the list again.
constexpr std::chrono::milliseconds kIdleSlack{10};
constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";
}  // namespace

Server::Server(Engine& engine, sylar::IOManager* worker, sylar::IOManager* io_worker, sylar::IOManager* accept_worker)
    : TcpServer(worker, io_worker, accept_worker), m_engine(engine) {
  setIdentity(sylar::FiberIdentity::kWorker);  // no command calls a library that keeps something for its thread
  const std::chrono::milliseconds timeout(engine.options().idle_timeout_ms);
  if (timeout.count() == 0) return;
  const auto close = [&engine](const std::shared_ptr<Connection>& connection) {
    engine.idle_closed.fetch_add(1, std::memory_order_relaxed);
    connection->close();
  };
  m_idle = std::make_unique<sylar::IdleList<Connection>>(*io_worker, timeout, close, kIdleSlack);
}

void Server::handleClient(sylar::Socket::ptr client) {
  struct Counted {
    explicit Counted(std::atomic<size_t>& its_count) : count(its_count), number(++count) {}
    ~Counted() { --count; }
    std::atomic<size_t>& count;
    const size_t number;
  } const counted(m_engine.clients);

  if (counted.number > m_engine.live().max_clients) {
    ++m_engine.refused_connections;
    client->send(kTooManyClients.data(), kTooManyClients.size(), MSG_DONTWAIT);
    return;
  }
  ++m_engine.connections;
  client->setRecvTimeout(0);  // the idle list closes silent clients instead
  const auto connection = std::make_shared<Connection>(m_engine, client, ++m_last_id);
  if (m_idle != nullptr) m_idle->add(connection->idle, connection);
  connection->serve();
}

}  // namespace ttlkv
