// Load for an echo server: each connection sends a message, waits for all of it to come back, checks every byte, sends the next.
// A closed loop, so the server decides the pace. One thread, so that a pinned client takes one core; it says how much of that
// core it took, because a saturated client measures itself.
//
//   echo_load --port N [--connections 100] [--size 64] [--seconds 1.5] [--warmup 0.2] [--server-pid PID] [--protocol plain|redis]
//             [--slow none|sleep|compute] [--quantiles 0|1]
//
// Measures for `seconds` after `warmup`, and prints one line of JSON (`answers`: those before and in the window). With
// --server-pid also the CPU time of all threads of that process over exactly this window, from its CPU clock, in ns per request.
// --protocol redis: the message is the argument of redis's command ECHO.
// --slow: one message of a hundred, drawn at random, asks for that (bench/support/slow.h); its own latency is not counted.
// --quantiles 1: also prints the latencies as [quantile, us] pairs, closer and closer to 1.
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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/support/slow.h"

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
  bool redis = false;
  bench::Slow slow = bench::Slow::kNo;
  bool quantiles = false;
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

/// One conversation: `sent` bytes of the request have left, `received` of the answer have come back right. The message stands in
/// both.
struct Connection {
  int fd = -1;
  std::string request;
  std::string answer;
  size_t sent = 0;
  size_t received = 0;
  bool slow = false;
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
  std::minstd_rand m_random{1};
  const std::string m_before_message;  // in a request; what follows is the same in both
  const std::string m_before_answer;
  std::vector<char> m_buffer;
  std::vector<Connection> m_connections;
  std::vector<uint32_t> m_latencies_ns;
  int64_t m_answers = 0;  // from the first on, measured or not
  bool m_measuring = false;
};

Load::Load(const Options& options)
    : m_options(options),
      m_epoll(epoll_create1(EPOLL_CLOEXEC)),
      m_before_message(options.redis ? "*2\r\n$4\r\nECHO\r\n$" + std::to_string(options.size) + "\r\n" : ""),
      m_before_answer(options.redis ? "$" + std::to_string(options.size) + "\r\n" : ""),
      m_buffer(std::max<size_t>(options.size + 64, 4096)),  // longer than an answer, so a byte too many shows
      m_connections(options.connections) {
  if (m_options.server_pid != 0 && clock_getcpuclockid(m_options.server_pid, &m_server_clock) != 0)
    fail("no such server process");
  m_latencies_ns.reserve(1 << 20);
  for (int i = 0; i < m_options.connections; ++i) {
    Connection& connection = m_connections[i];
    connection.fd = connectTo(m_options.port);
    std::string message(m_options.size, 0);
    for (char& byte : message) byte = static_cast<char>(m_random() >> 8 | bench::kNeverSlow);
    if (m_options.redis) message += "\r\n";
    connection.request = m_before_message + message;
    connection.answer = m_before_answer + message;
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
  if (connection.sent < connection.request.size()) sendRest(connection);
  receive(connection, ending);
}

/// Each message is new in its first bytes, so that an answer to an older one is not taken for right.
void Load::startMessage(Connection& connection, int64_t now_ns) {
  ++connection.number;
  connection.slow = m_options.slow != bench::Slow::kNo && m_random() % 100 == 0;
  for (const auto& [text, before] :
       {std::pair{&connection.request, &m_before_message}, std::pair{&connection.answer, &m_before_answer}}) {
    char* const message = text->data() + before->size();
    std::memcpy(message, &connection.number, std::min(sizeof connection.number, m_options.size));
    if (m_options.slow != bench::Slow::kNo)
      message[m_options.size - 1] = connection.slow ? static_cast<char>(m_options.slow) : bench::kNeverSlow;
  }
  connection.sent = 0;
  connection.received = 0;
  connection.started_ns = now_ns;
  sendRest(connection);
}

void Load::sendRest(Connection& connection) {
  const std::string_view rest = std::string_view(connection.request).substr(connection.sent);
  const ssize_t sent = send(connection.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
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
    const std::string_view awaited = std::string_view(connection.answer).substr(connection.received);
    if (static_cast<size_t>(size) > awaited.size()) fail("more came back than was sent");
    if (std::memcmp(awaited.data(), m_buffer.data(), size) != 0) fail("a wrong byte came back");
    connection.received += size;
    if (connection.received == connection.answer.size()) {
      const int64_t now_ns = now();
      ++m_answers;
      if (m_measuring && !connection.slow)
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
  const double requests = static_cast<double>(m_latencies_ns.size());  // the slow ones are not among them
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
  if (m_options.quantiles) {
    std::printf(", \"quantiles\": [");
    const char* separator = "";
    for (double above = 1; above * requests >= 1; above *= 0.8) {
      std::printf("%s[%.6f, %.2f]", std::exchange(separator, ", "), 1 - above, latencyUs(1 - above));
    }
    std::printf("]");
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
    } else if (name == "--protocol") {
      options.redis = std::string_view(value) == "redis";
      good &= options.redis || std::string_view(value) == "plain";
    } else if (name == "--slow") {
      good &= bench::parseSlow(value, options.slow);
    } else if (name == "--quantiles") {
      options.quantiles = std::atoi(value) != 0;
    } else {
      good = false;
    }
  }
  if (!good || options.port == 0 || options.connections < 1 || options.size < 1 || options.size > (1 << 20) ||
      (options.slow != bench::Slow::kNo && options.size < 16)) {
    std::fprintf(stderr,
                 "usage: echo_load --port N [--connections 100] [--size 64] [--seconds 1.5] [--warmup 0.2] [--server-pid PID]\n"
                 "                 [--protocol plain|redis] [--slow none|sleep|compute] [--quantiles 0|1]\n");
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
