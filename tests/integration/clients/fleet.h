// For the tests of client libraries: many clients in fibers of a few workers, and a server that is slow, dies and comes back under
// them. What a client says in a fiber must equal what it says on a plain thread.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sylar/sync/blocking_pool.h"
#include "sylar/sync/event.h"
#include "tests/hook/names/names.h"
#include "tests/hook/names/nss_module.h"
#include "tests/integration/server_process.h"
#include "tests/sched/gate.h"
#include "tests/support/thread_state.h"

namespace sylar::test {

/// The server as its clients see it. Each of `clients` clients passes the marks below in their order; what is between two of them
/// happens to all.
class Server {
 public:
  Server(ServerProcess& process, size_t clients) : m_process(process), m_clients(clients) {
    askForNames("sylar");
    s_name_server = &m_name_server;
    whenAsked([] { EXPECT_TRUE(s_name_server.load()->wait()); });
  }
  ~Server() { whenAsked(nullptr); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Its name, for which the name server has no answer until all clients have asked for it.
  static constexpr const char* kName = "server.test";
  static constexpr const char* kAddress = "127.0.0.1";
  int port() const { return m_process.port(); }

  // ---- For clients. A mark waits for all other clients.
  void begins() { m_begins.pass(); }
  /// The next request of each client is answered when all have made one.
  void stalls() { m_stalls.pass(); }
  /// The server dies when all have made their next request.
  void dies() { m_dies.pass(); }
  /// Nothing listens at its port any more.
  void isGone() { m_is_gone.pass(); }
  /// The server is there again.
  void returns() { m_returns.pass(); }

  /// Makes happen what the marks say. For a plain thread. `others_go_on` returns when the clients wait in the call that comes after
  /// the mark that they passed.
  void conduct(const std::function<void()>& others_go_on) {
    m_begins.open(m_clients, [] {});
    others_go_on();
    m_name_server.open();
    m_stalls.open(m_clients, [&] { m_process.suspend(); });
    others_go_on();
    m_process.resume();
    m_dies.open(m_clients, [&] { m_process.suspend(); });
    others_go_on();
    m_process.kill();
    m_is_gone.open(m_clients, [] {});
    m_returns.open(m_clients, [&] { m_process.start(); });
  }

 private:
  class Mark {
   public:
    void pass() {
      m_arrived.fetch_add(1);
      EXPECT_TRUE(m_open.wait());
      m_passed.fetch_add(1);
    }
    template <class Change>
    void open(size_t clients, Change change) {
      EXPECT_TRUE(eventually([&] { return m_arrived == clients; }));
      change();
      m_open.set();
      EXPECT_TRUE(eventually([&] { return m_passed == clients; }));
    }

   private:
    std::atomic<size_t> m_arrived{0};
    std::atomic<size_t> m_passed{0};
    Event m_open;
  };

  static inline std::atomic<Gate*> s_name_server{nullptr};

  ServerProcess& m_process;
  const size_t m_clients;
  Gate m_name_server;
  Mark m_begins;
  Mark m_stalls;
  Mark m_dies;
  Mark m_is_gone;
  Mark m_returns;
};

/// A line of what a client says. Of a long text it has the size and a hash.
inline std::string line(const std::string& text) {
  if (text.size() < 1000) return text + '\n';
  return std::to_string(text.size()) + " bytes, hash " + std::to_string(std::hash<std::string>()(text)) + '\n';
}

/// Ordinary blocking code around a client library. Returns all replies and errors that it got.
using Client = std::string (*)(Server& server);

inline std::string saidOnThread(ServerProcess& process, Client client) {
  Server server(process, 1);
  std::string said;
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id = threadId();
    server.begins();
    said = client(server);
  });
  server.conduct([&] { EXPECT_TRUE(eventually([&] { return stateOfThread(id) == 'S'; })); });
  thread.join();
  return said;
}

inline std::vector<std::string> saidInFibers(ServerProcess& process, Client client, size_t workers, size_t clients) {
  const LeakCheck leaks;
  Server server(process, clients);
  std::vector<std::string> said(clients);
  std::vector<std::atomic<int>> ticks(workers);
  std::atomic<size_t> talking{clients};
  {
    IOManager iom(workers, false, "clients");
    for (std::atomic<int>& one : ticks) {
      iom.place([&] {
        for (; talking > 0; ++one) ::usleep(5000);
      });
    }
    for (std::string& one : said) {
      iom.place([&] {
        server.begins();
        one = client(server);
        --talking;
      });
    }
    server.conduct([&] {
      for (const std::atomic<int>& one : ticks) {
        const int before = one;
        EXPECT_TRUE(eventually([&] { return one >= before + 3; })) << "a client blocks its worker";
      }
    });
  }
  BlockingPool::process().endAll();
  return said;
}

/// Runs `client` on a plain thread, then many of it in fibers of one worker, and of two.
inline void saysInFibersWhatItSaysOnAThread(const std::string& server, Client client) {
  constexpr size_t kClients = 16;
  ServerProcess process(server);
  const std::string expected = saidOnThread(process, client);
  testing::Test::RecordProperty("said", expected);
  for (const size_t workers : {1, 2}) {
    SCOPED_TRACE(workers);
    for (const std::string& said : saidInFibers(process, client, workers, kClients)) EXPECT_EQ(said, expected);
  }
}

}  // namespace sylar::test
