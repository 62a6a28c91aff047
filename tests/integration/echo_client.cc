// A client that distrusts an echo server: opens all its connections at once, sends messages of random size and content over each,
// one after the other, and checks every byte that comes back, and that nothing comes after. Plain sockets on one epoll loop: it
// shares no code with what it tests.
//
//   echo_client HOST:PORT [connections = 1000] [messages = 100000] [seed = random]
//
// Messages have 1 to 16384 bytes. Prints the seed, then one line of summary, and exits with 0. A wrong byte, a failed or lost
// connection, or 30 s without any progress: one line that says which, and 1.
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr size_t kMaxMessage = 16 * 1024;
constexpr int kPatienceMs = 30'000;

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::fprintf(stderr, "echo_client: ");
  std::vfprintf(stderr, format, values);
  std::fprintf(stderr, "\n");
  va_end(values);
  std::exit(1);
}

struct Options {
  std::string host;
  std::string port;
  size_t connections = 1000;
  size_t messages = 100'000;
  uint64_t seed = std::random_device()();
};

/// Random bytes of which every message is a stretch, so that a message costs no memory of its own.
std::vector<char> makePad(std::mt19937_64& random) {
  std::vector<char> pad(1 << 20);
  for (char& byte : pad) byte = static_cast<char>(random());
  return pad;
}

struct Connection {
  int fd = -1;
  std::minstd_rand random;  ///< its own, so that the seed alone decides what it sends, not the order of events
  size_t messages_left = 0;
  const char* message = nullptr;
  size_t size = 0;
  size_t sent = 0;
  size_t received = 0;
  bool connected = false;
  bool finished = false;  ///< our end is shut; only the server's end of stream may still come
};

class Client {
 public:
  explicit Client(const Options& options);
  void connectAll();
  void exchangeAll();
  uint64_t bytes() const { return m_bytes; }

 private:
  void open(Connection& connection, const addrinfo& address);
  template <class Serve>
  void pollOnce(Serve serve);
  void finishConnect(Connection& connection);
  void serve(Connection& connection);
  void next(Connection& connection);
  void sendSome(Connection& connection);
  bool receiveSome(Connection& connection);
  void check(Connection& connection, const char* data, size_t size);
  size_t indexOf(const Connection& connection) const { return &connection - m_connections.data(); }

  const Options m_options;
  std::mt19937_64 m_random;
  const std::vector<char> m_pad;
  std::vector<Connection> m_connections;
  std::vector<char> m_buffer;
  const int m_epoll;
  size_t m_connected = 0;
  size_t m_closed = 0;
  uint64_t m_bytes = 0;
};

Client::Client(const Options& options)
    : m_options(options),
      m_random(options.seed),
      m_pad(makePad(m_random)),
      m_connections(options.connections),
      m_buffer(64 * 1024),
      m_epoll(epoll_create1(EPOLL_CLOEXEC)) {
  for (Connection& connection : m_connections) connection.random.seed(static_cast<uint32_t>(m_random()));
  for (size_t i = 0; i < options.messages; ++i) ++m_connections[i % options.connections].messages_left;
}

void Client::connectAll() {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* address = nullptr;
  const int error = getaddrinfo(m_options.host.c_str(), m_options.port.c_str(), &hints, &address);
  if (error != 0) fail("%s:%s: %s", m_options.host.c_str(), m_options.port.c_str(), gai_strerror(error));
  for (Connection& connection : m_connections) open(connection, *address);
  freeaddrinfo(address);
  while (m_connected < m_connections.size()) {
    pollOnce([this](Connection& connection) { finishConnect(connection); });
  }
}

void Client::exchangeAll() {
  for (Connection& connection : m_connections) {
    next(connection);
    serve(connection);
  }
  while (m_closed < m_connections.size()) {
    pollOnce([this](Connection& connection) { serve(connection); });
  }
}

void Client::open(Connection& connection, const addrinfo& address) {
  connection.fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection.fd < 0) fail("socket %zu: %s", indexOf(connection), std::strerror(errno));
  const int one = 1;
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(connection.fd, address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS) {
    fail("connection %zu: %s", indexOf(connection), std::strerror(errno));
  }
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  event.data.ptr = &connection;
  if (epoll_ctl(m_epoll, EPOLL_CTL_ADD, connection.fd, &event) != 0) fail("epoll_ctl: %s", std::strerror(errno));
}

template <class Serve>
void Client::pollOnce(Serve serve) {
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(m_epoll, events.data(), static_cast<int>(events.size()), kPatienceMs);
  if (count == 0) {
    fail("no progress for %d s: %zu of %zu connected, %zu done", kPatienceMs / 1000, m_connected, m_connections.size(), m_closed);
  }
  for (int i = 0; i < count; ++i) serve(*static_cast<Connection*>(events[i].data.ptr));
}

void Client::finishConnect(Connection& connection) {
  if (connection.connected) return;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(connection.fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) fail("connection %zu: %s", indexOf(connection), std::strerror(error));
  connection.connected = true;
  ++m_connected;
}

/// An edge comes once: sends and receives until neither is possible.
void Client::serve(Connection& connection) {
  if (connection.fd < 0) return;
  do {
    sendSome(connection);
  } while (receiveSome(connection));
}

/// Starts the connection's next message, or shuts our end after the last one.
void Client::next(Connection& connection) {
  connection.size = connection.sent = connection.received = 0;
  if (connection.messages_left == 0) {
    connection.finished = true;
    if (shutdown(connection.fd, SHUT_WR) != 0) fail("connection %zu: shutdown: %s", indexOf(connection), std::strerror(errno));
    return;
  }
  --connection.messages_left;
  connection.size = std::uniform_int_distribution<size_t>(1, kMaxMessage)(connection.random);
  connection.message = m_pad.data() + std::uniform_int_distribution<size_t>(0, m_pad.size() - connection.size)(connection.random);
}

void Client::sendSome(Connection& connection) {
  while (connection.sent < connection.size) {
    const ssize_t sent =
        send(connection.fd, connection.message + connection.sent, connection.size - connection.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) fail("connection %zu: send: %s", indexOf(connection), std::strerror(errno));
    connection.sent += sent;
  }
}

/// Receives once; false when nothing is there or all is over.
bool Client::receiveSome(Connection& connection) {
  const ssize_t size = recv(connection.fd, m_buffer.data(), m_buffer.size(), 0);
  if (size < 0 && errno == EAGAIN) return false;
  if (size < 0) fail("connection %zu: recv: %s", indexOf(connection), std::strerror(errno));
  if (size == 0) {
    if (!connection.finished)
      fail("connection %zu: closed by the server, %zu messages short", indexOf(connection), connection.messages_left + 1);
    close(connection.fd);
    connection.fd = -1;
    ++m_closed;
    return false;
  }
  check(connection, m_buffer.data(), size);
  if (connection.received == connection.size) next(connection);
  return true;
}

void Client::check(Connection& connection, const char* data, size_t size) {
  if (size > connection.sent - connection.received) {
    fail("connection %zu: %zu bytes came back that were never sent", indexOf(connection),
         size - (connection.sent - connection.received));
  }
  const char* expected = connection.message + connection.received;
  if (std::memcmp(expected, data, size) != 0) {
    const size_t at = std::mismatch(data, data + size, expected).first - data;
    fail("connection %zu: byte %zu of a message of %zu is wrong", indexOf(connection), connection.received + at, connection.size);
  }
  connection.received += size;
  m_bytes += size;
}

Options parse(int argc, char** argv) {
  Options options;
  const std::string target = argc > 1 ? argv[1] : "";
  const size_t colon = target.rfind(':');
  if (colon != std::string::npos) {
    options.host = target.substr(0, colon);
    options.port = target.substr(colon + 1);
  }
  if (argc > 2) options.connections = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) options.messages = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) options.seed = std::strtoull(argv[4], nullptr, 10);
  if (options.port.empty() || options.connections == 0 || argc > 5) {
    std::fprintf(stderr, "usage: echo_client HOST:PORT [connections = 1000] [messages = 100000] [seed = random]\n");
    std::exit(2);
  }
  return options;
}

void raiseDescriptorLimit(size_t wanted) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < wanted) fail("%zu descriptors are needed, the limit is %zu", wanted, static_cast<size_t>(files.rlim_cur));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  raiseDescriptorLimit(options.connections + 16);
  std::printf("echo_client: seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  Client client(options);
  client.connectAll();
  client.exchangeAll();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("echo_client: %zu connections at once, %zu messages, %.1f MB, every byte right, %.2f s\n", options.connections,
              options.messages, static_cast<double>(client.bytes()) / 1e6, elapsed.count());
}
