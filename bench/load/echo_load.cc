// Load for an echo server: each connection sends a message, waits for all of it to come back, checks every byte, sends the next.
// A closed loop, so the server decides the pace. One thread, so that a pinned client takes one core; it says how much of that
// core it took, because a saturated client measures itself.
//
//   echo_load --port N [--connections 100] [--size 64] [--seconds 1.5] [--warmup 0.2] [--server-pid PID]
//
// Measures for `seconds` after `warmup`, and prints one line of JSON (`answers`: those before and in the window). With
// --server-pid also the CPU time of all threads of that process over exactly this window, from its CPU clock, in ns per request.
// Exits with 1 on a wrong byte, a lost connection, or 5 s without any answer.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "echo_load: %s\n", what);
  std::exit(1);
}

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct Options {
  uint16_t port = 0;
  int connections = 100;
  size_t size = 64;
  double seconds = 1.5;
  double warmup = 0.2;
  pid_t server_pid = 0;
};

int64_t readClock(clockid_t clock) {
  timespec time = {};
  if (clock_gettime(clock, &time) != 0) die("clock_gettime");
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

int64_t now() { return readClock(CLOCK_MONOTONIC); }

int connectTo(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect");
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) die("fcntl");
  return fd;
}

/// One conversation: `message` is under way; `sent` bytes of it have left and `received` have come back right.
struct Connection {
  int fd = -1;
  char* message = nullptr;
  size_t sent = 0;
  size_t received = 0;
  uint64_t number = 0;
  int64_t started_ns = 0;
};

class Load {
 public:
  explicit Load(const Options& options);
  void run();

 private:
  /// What the clocks say at one end of the window.
  struct Reading {
    int64_t time_ns = 0;
    int64_t client_cpu_ns = 0;
    int64_t server_cpu_ns = 0;
  };

  Reading readAll() const;
  void poll();
  void serve(Connection& connection, bool ending);
  void startMessage(Connection& connection, int64_t now_ns);
  void sendRest(Connection& connection);
  void receive(Connection& connection, bool ending);
  void print(const Reading& begin, const Reading& end);
  double latencyUs(double quantile);

  const Options m_options;
  clockid_t m_server_clock = 0;
  int m_epoll;
  std::vector<char> m_messages;
  std::vector<char> m_buffer;
  std::vector<Connection> m_connections;
  std::vector<uint32_t> m_latencies_ns;
  int64_t m_answers = 0;  // from the first on, measured or not
  bool m_measuring = false;
};

Load::Load(const Options& options)
    : m_options(options),
      m_epoll(epoll_create1(EPOLL_CLOEXEC)),
      m_messages(options.connections * options.size),
      m_buffer(std::max<size_t>(options.size + 1, 4096)),  // longer than a message, so a byte too many shows
      m_connections(options.connections) {
  if (m_options.server_pid != 0 && clock_getcpuclockid(m_options.server_pid, &m_server_clock) != 0)
    fail("no such server process");
  std::minstd_rand random(1);
  for (char& byte : m_messages) byte = static_cast<char>(random() >> 8);
  m_latencies_ns.reserve(1 << 20);
  for (int i = 0; i < m_options.connections; ++i) {
    Connection& connection = m_connections[i];
    connection.fd = connectTo(m_options.port);
    connection.message = &m_messages[i * m_options.size];
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = &connection;
    if (epoll_ctl(m_epoll, EPOLL_CTL_ADD, connection.fd, &event) != 0) die("epoll_ctl");
  }
}

void Load::run() {
  const int64_t begin_ns = now() + static_cast<int64_t>(m_options.warmup * 1e9);
  const int64_t end_ns = begin_ns + static_cast<int64_t>(m_options.seconds * 1e9);
  for (Connection& connection : m_connections) startMessage(connection, now());
  while (now() < begin_ns) poll();
  const Reading begin = readAll();
  m_measuring = true;
  while (now() < end_ns) poll();
  print(begin, readAll());
}

Load::Reading Load::readAll() const {
  return {.time_ns = now(),
          .client_cpu_ns = readClock(CLOCK_PROCESS_CPUTIME_ID),
          .server_cpu_ns = m_options.server_pid == 0 ? 0 : readClock(m_server_clock)};
}

void Load::poll() {
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(m_epoll, events.data(), static_cast<int>(events.size()), 5000);
  if (count == 0) fail("no answer for 5 s");
  for (int i = 0; i < count; ++i) {
    serve(*static_cast<Connection*>(events[i].data.ptr), (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
  }
}

void Load::serve(Connection& connection, bool ending) {
  if (connection.sent < m_options.size) sendRest(connection);
  receive(connection, ending);
}

/// Each message is new in its first bytes, so that an answer to an older one is not taken for right.
void Load::startMessage(Connection& connection, int64_t now_ns) {
  ++connection.number;
  std::memcpy(connection.message, &connection.number, std::min(sizeof connection.number, m_options.size));
  connection.sent = 0;
  connection.received = 0;
  connection.started_ns = now_ns;
  sendRest(connection);
}

void Load::sendRest(Connection& connection) {
  const ssize_t sent = send(connection.fd, connection.message + connection.sent, m_options.size - connection.sent, MSG_NOSIGNAL);
  if (sent >= 0) {
    connection.sent += sent;
  } else if (errno != EAGAIN) {
    die("send");
  }
}

void Load::receive(Connection& connection, bool ending) {
  for (;;) {
    const ssize_t size = recv(connection.fd, m_buffer.data(), m_buffer.size(), 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size < 0) die("recv");
    if (size == 0) fail("the server closed a connection");
    if (static_cast<size_t>(size) > connection.sent - connection.received) fail("more came back than was sent");
    if (std::memcmp(connection.message + connection.received, m_buffer.data(), size) != 0) fail("a wrong byte came back");
    connection.received += size;
    if (connection.received == m_options.size) {
      const int64_t now_ns = now();
      ++m_answers;
      if (m_measuring)
        m_latencies_ns.push_back(static_cast<uint32_t>(std::min<int64_t>(now_ns - connection.started_ns, UINT32_MAX)));
      startMessage(connection, now_ns);
    }
    // A short read has drained a TCP socket, unless it ends.
    if (!ending && static_cast<size_t>(size) < m_buffer.size()) return;
  }
}

double Load::latencyUs(double quantile) {
  if (m_latencies_ns.empty()) return 0;
  const auto nth = m_latencies_ns.begin() + static_cast<ptrdiff_t>(quantile * static_cast<double>(m_latencies_ns.size() - 1));
  std::nth_element(m_latencies_ns.begin(), nth, m_latencies_ns.end());
  return *nth / 1e3;
}

void Load::print(const Reading& begin, const Reading& end) {
  const double requests = static_cast<double>(m_latencies_ns.size());
  const double window_ns = static_cast<double>(end.time_ns - begin.time_ns);
  if (requests == 0) fail("no request in the whole window");
  std::printf(
      "{\"connections\": %d, \"size\": %zu, \"seconds\": %.3f, \"requests\": %.0f, \"answers\": %lld, "
      "\"requests_per_s\": %.0f, \"p50_us\": %.2f, \"p99_us\": %.2f, \"client_cpu\": %.3f",
      m_options.connections, m_options.size, window_ns / 1e9, requests, static_cast<long long>(m_answers),
      requests / window_ns * 1e9, latencyUs(0.50), latencyUs(0.99),
      static_cast<double>(end.client_cpu_ns - begin.client_cpu_ns) / window_ns);
  if (m_options.server_pid != 0) {
    const double server_cpu_ns = static_cast<double>(end.server_cpu_ns - begin.server_cpu_ns);
    std::printf(", \"server_cpu\": %.3f, \"server_cpu_ns_per_request\": %.0f", server_cpu_ns / window_ns,
                server_cpu_ns / requests);
  }
  std::printf("}\n");
}

Options parse(int argc, char** argv) {
  Options options;
  bool good = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--port") {
      options.port = static_cast<uint16_t>(std::atoi(value));
    } else if (name == "--connections") {
      options.connections = std::atoi(value);
    } else if (name == "--size") {
      options.size = std::strtoul(value, nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else if (name == "--warmup") {
      options.warmup = std::atof(value);
    } else if (name == "--server-pid") {
      options.server_pid = std::atoi(value);
    } else {
      good = false;
    }
  }
  if (!good || options.port == 0 || options.connections < 1 || options.size < 1 || options.size > (1 << 20)) {
    std::fprintf(stderr,
                 "usage: echo_load --port N [--connections 100] [--size 64] [--seconds 1.5] [--warmup 0.2] [--server-pid PID]\n");
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Load(options).run();
}
