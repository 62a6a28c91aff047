#include "connection.h"

#include <span>
#include <utility>

#include "reply.h"

namespace ttlkv {

namespace {
// The replies to a pipeline are collected up to this size, so that a client that pipelines reads of large values cannot make the
// server hold all of them.
constexpr size_t kFlushAt = size_t{64} << 10;

void sendAll(sylar::Socket& socket, Outbox& outbox) {
  for (std::string bytes; outbox.take(bytes);) {
    if (socket.send(bytes.data(), bytes.size()) == static_cast<int>(bytes.size())) continue;
    socket.close();  // ends the recv of the connection
    return;
  }
}
}  // namespace

Connection::Connection(Engine& engine, sylar::Socket::ptr socket, uint64_t id)
    : m_engine(engine), m_socket(std::move(socket)), m_reader(engine.options().max_bulk_bytes) {
  m_session.id = id;
  m_session.outbox = [this]() -> Outbox& { return outbox(); };
}

// An exception, such as that of a lack of memory, may have ended serve() before its last lines.
Connection::~Connection() {
  m_engine.forget(m_session);
  if (m_outbox != nullptr) m_outbox->close();
}

void Connection::serve() {
  while (true) {
    const std::span<char> space = m_reader.space();
    const int size = m_socket->recv(space.data(), space.size());  // suspends while the client is silent
    if (size <= 0) break;
    idle.touch();
    m_reader.received(static_cast<size_t>(size));
    if (!executeAll()) break;
  }
  finish();
}

/// Executes the requests that have arrived as a whole. Returns false if the connection is to end.
bool Connection::executeAll() {
  RequestReader::Result result = RequestReader::kIncomplete;
  uint64_t executed = 0;
  bool sent = true;
  while (sent && !m_session.ends && (result = m_reader.next()) == RequestReader::kRequest) {
    if (m_reader.args().empty()) continue;
    m_engine.execute(m_session, m_reader.args(), m_out);
    ++executed;
    if (m_out.size() >= kFlushAt) sent = flush();
  }
  m_engine.commands.fetch_add(executed, std::memory_order_relaxed);
  if (!sent) return false;
  if (!m_session.ends && result == RequestReader::kBroken) {
    m_engine.protocol_errors.fetch_add(1, std::memory_order_relaxed);
    reply::error(m_out, m_reader.error());
    m_session.ends = true;
  }
  return flush() && !m_session.ends;
}

/// Sends the replies, or leaves them to the fiber that sends to a subscriber. Returns false if the client has gone.
bool Connection::flush() {
  if (m_out.empty()) return true;
  bool sent = true;
  if (m_outbox != nullptr) {
    m_outbox->append(m_out);
  } else {
    sent = m_socket->send(m_out.data(), m_out.size()) == static_cast<int>(m_out.size());  // suspends if the client reads slowly
  }
  m_out.clear();
  if (m_out.capacity() > 2 * kFlushAt) m_out.shrink_to_fit();
  return sent;
}

Outbox& Connection::outbox() {
  if (m_outbox == nullptr) {
    idle.remove();  // a subscriber may be silent, as in Redis
    m_outbox = std::make_shared<Outbox>(m_engine.options().max_outbox_bytes, [socket = m_socket.get()] { socket->close(); });
    m_sender = sylar::go([socket = m_socket, outbox = m_outbox] { sendAll(*socket, *outbox); });
  }
  return *m_outbox;
}

void Connection::finish() {
  m_engine.forget(m_session);
  if (m_outbox == nullptr) return;
  m_outbox->close();
  m_sender.wait();  // replies and messages from before the end are still sent
}

}  // namespace ttlkv
