// Unmodified c-ares in many fibers, each with a loop of its own around it. The name server is a plain thread, which is slow and
// loses answers.
#include <ares.h>
#include <netdb.h>
#include <sys/select.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/hook/names/names.h"
#include "tests/integration/clients/crowd.h"

namespace sylar::test {
namespace {

/// Takes all questions, and answers those for which `answers` says so. It asks that with the name and how often that was asked for.
class NameServer {
 public:
  using Answers = std::function<bool(const std::string& name, int time)>;
  explicit NameServer(Answers answers) : m_answers(std::move(answers)), m_thread([this] { run(); }) {}
  ~NameServer() {
    m_ends = true;
    const sockaddr_in address = addressOf(m_socket);
    EXPECT_EQ(::sendto(m_socket, "", 0, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    m_thread.join();
    ::close(m_socket);
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(addressOf(m_socket).sin_port)); }
  /// How many names have been asked for.
  size_t names() const { return m_names; }

 private:
  void run() {
    std::map<std::string, int> times;
    for (;;) {
      char query[512];
      sockaddr_in from{};
      socklen_t from_size = sizeof from;
      const ssize_t size = ::recvfrom(m_socket, query, sizeof query, 0, reinterpret_cast<sockaddr*>(&from), &from_size);
      if (m_ends) return;
      ASSERT_GT(size, 17);
      const std::string name(query + 13, static_cast<size_t>(query[12]));  // the first label
      const int time = ++times[name];
      m_names = times.size();
      if (!m_answers(name, time)) continue;
      const std::string answer = answerTo(std::string(query, static_cast<size_t>(size)), static_cast<char>(std::stoi(name)));
      ::sendto(m_socket, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), from_size);
    }
  }

  const int m_socket = boundSocket(hookedCalls(), SOCK_DGRAM);
  const Answers m_answers;
  std::atomic<size_t> m_names{0};
  std::atomic<bool> m_ends{false};
  std::thread m_thread;
};

/// Lets the library do what it has to do until nothing is asked for any more.
using Loop = void (*)(ares_channel channel);

void loopBySelect(ares_channel channel) {
  for (;;) {
    fd_set reads, writes;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    const int count = ::ares_fds(channel, &reads, &writes);
    if (count == 0) return;
    timeval time;
    EXPECT_GE(::select(count, &reads, &writes, nullptr, ::ares_timeout(channel, nullptr, &time)), 0);
    ::ares_process(channel, &reads, &writes);
  }
}

void loopByPoll(ares_channel channel) {
  for (;;) {
    ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
    const int wanted = ::ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
    std::vector<pollfd> polled;
    for (int i = 0; i < ARES_GETSOCK_MAXNUM; ++i) {
      const int events = (ARES_GETSOCK_READABLE(wanted, i) ? POLLIN : 0) | (ARES_GETSOCK_WRITABLE(wanted, i) ? POLLOUT : 0);
      if (events != 0) polled.push_back({sockets[i], static_cast<short>(events), 0});
    }
    if (polled.empty()) return;
    timeval time;
    const timeval* const limit = ::ares_timeout(channel, nullptr, &time);
    const int ms = limit == nullptr ? -1 : static_cast<int>(limit->tv_sec * 1000 + (limit->tv_usec + 999) / 1000);
    EXPECT_GE(::poll(polled.data(), polled.size(), ms), 0);
    bool ready = false;
    for (const pollfd& one : polled) {
      if (one.revents == 0) continue;
      ready = true;
      const bool writable = (one.revents & POLLOUT) != 0, readable = (one.revents & ~POLLOUT) != 0;
      ::ares_process_fd(channel, readable ? one.fd : ARES_SOCKET_BAD, writable ? one.fd : ARES_SOCKET_BAD);
    }
    if (!ready) ::ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // what has timed out
  }
}

/// A channel of c-ares to one server.
class Resolver {
 public:
  Resolver(const std::string& server, Loop loop, int timeout_ms, int tries) : m_loop(loop) {
    ares_options options{};
    options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
    options.timeout = timeout_ms;
    options.tries = tries;
    char lookups[] = "b";  // no file of hosts
    options.lookups = lookups;
    EXPECT_EQ(::ares_init_options(&m_channel, &options, ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS),
              ARES_SUCCESS);
    EXPECT_EQ(::ares_set_servers_ports_csv(m_channel, server.c_str()), ARES_SUCCESS);
  }
  ~Resolver() { ::ares_destroy(m_channel); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// The addresses of the names, or the errors.
  std::string lookup(const std::vector<std::string>& names) {
    std::vector<std::string> found(names.size());
    for (size_t i = 0; i < names.size(); ++i)
      ::ares_gethostbyname(m_channel, names[i].c_str(), AF_INET, &Resolver::found, &found[i]);
    m_loop(m_channel);
    std::string all;
    for (const std::string& one : found) all += one + ' ';
    return all;
  }

 private:
  static void found(void* text, int status, int, hostent* host) {
    char address[INET_ADDRSTRLEN] = "";
    if (status == ARES_SUCCESS) ::inet_ntop(AF_INET, host->h_addr_list[0], address, sizeof address);
    *static_cast<std::string*>(text) = status == ARES_SUCCESS ? address : ::ares_strerror(status);
  }

  const Loop m_loop;
  ares_channel m_channel{};
};

constexpr int kPatienceMs = std::chrono::milliseconds(kPatience).count();

class Cares : public Crowds {
 protected:
  Cares() { EXPECT_EQ(::ares_library_init(ARES_LIB_INIT_ALL), ARES_SUCCESS); }
  ~Cares() override { ::ares_library_cleanup(); }
  /// Three names of fiber i, and what their lookup gives.
  static std::vector<std::string> namesOf(size_t i) {
    return {std::to_string(3 * i) + ".test", std::to_string(3 * i + 1) + ".test", std::to_string(3 * i + 2) + ".test"};
  }
  static std::string addressesOf(size_t i) {
    return "127.0.0." + std::to_string(3 * i) + " 127.0.0." + std::to_string(3 * i + 1) + " 127.0.0." +
           std::to_string(3 * i + 2) + ' ';
  }
  static Loop loopOf(size_t i) { return i % 2 == 0 ? &loopBySelect : &loopByPoll; }
};
INSTANTIATE_TEST_SUITE_P(Workers, Cares, kOneAndTwo);

// HA-6
TEST_P(Cares, LookupsWaitForASlowServer) {
  Gate answers;
  NameServer server([&](const std::string&, int) { return answers.wait(); });
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    Resolver resolver(server.address(), loopOf(i), kPatienceMs, 1);
    us.arrive();
    EXPECT_EQ(resolver.lookup(namesOf(i)), addressesOf(i));
    EXPECT_EQ(resolver.lookup(namesOf(i)), addressesOf(i));
  });
  crowd.untilAllWait();
  answers.open();
}

TEST_P(Cares, LookupsAskAgainWhenAnAnswerIsLost) {
  NameServer server([](const std::string&, int time) { return time > 1; });
  Crowd crowd(workers(), [&](Crowd&, size_t i) {
    Resolver resolver(server.address(), loopOf(i), 20, 12);
    EXPECT_EQ(resolver.lookup(namesOf(i)), addressesOf(i));
  });
  crowd.end();
  EXPECT_EQ(server.names(), 3 * Crowd::kSize);
}

TEST_P(Cares, LookupsEndWhenAllAnswersAreLost) {
  NameServer server([](const std::string&, int) { return false; });
  Crowd crowd(workers(), [&](Crowd&, size_t i) {
    Resolver resolver(server.address(), loopOf(i), 10, 2);
    const std::string late = ::ares_strerror(ARES_ETIMEOUT) + std::string(" ");
    EXPECT_EQ(resolver.lookup(namesOf(i)), late + late + late);
  });
}

}  // namespace
}  // namespace sylar::test
