// Heartbeats with IdleList. The server sends "ping" to quiet clients and closes silent ones; the client answers "pong" or does
// not answer. The server sends every other line back.
//
//   heartbeat                               a demonstration: a server, a client that answers, and one that does not
//   heartbeat serve [ADDRESS]               default: 127.0.0.1:8012
//   heartbeat connect [ADDRESS [silent]]
//
// There are two lists because there are two times. Each has one timeout for all its peers, so a line that arrives moves its peer
// to the end of both lists, and no timer is touched, however many peers there are. TcpServer::setIdleTimeout() would not work
// here, because it counts both directions, and each ping would count as traffic.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "sylar/idle_list.h"
#include "sylar/signal_wait.h"
#include "sylar/tcp_server.h"

using namespace std::chrono_literals;

namespace {

class HeartbeatServer : public sylar::TcpServer {
 public:
  HeartbeatServer(sylar::IOManager& iom, std::chrono::milliseconds quiet, std::chrono::milliseconds silent)
      : TcpServer(&iom, &iom, &iom), m_quiet(iom, quiet, ask), m_silent(iom, silent, end) {
    setRecvTimeout(0);  // the lists close silent clients instead
  }

 protected:
  void handleClient(sylar::Socket::ptr client) override {
    const auto peer = std::make_shared<Peer>(client);
    m_quiet.add(peer->quiet, peer);
    m_silent.add(peer->silent, peer);
    char bytes[512];
    std::string line;
    for (int n; (n = client->recv(bytes, sizeof bytes)) > 0;) {
      peer->quiet.touch();
      peer->silent.touch();
      for (const char c : std::string_view(bytes, static_cast<size_t>(n))) {
        line += c;
        if (c != '\n' && line.size() < sizeof bytes) continue;
        if (line != "pong\n" && client->send(line.data(), line.size()) < 0) return;
        line.clear();
      }
    }
  }
  void endClient(sylar::Socket::ptr client) override { client->shutdown(SHUT_RD); }

 private:
  struct Peer {
    explicit Peer(sylar::Socket::ptr its_client) : client(std::move(its_client)) {}
    const sylar::Socket::ptr client;
    sylar::IdleList<Peer>::Entry quiet, silent;
  };

  /// Must not wait for a peer that does not read, because the other peers wait for this to return.
  static void ask(const std::shared_ptr<Peer>& peer) {
    peer->client->send("ping\n", 5, MSG_DONTWAIT);
    peer->quiet.touch();  // asks again after the same time
  }
  static void end(const std::shared_ptr<Peer>& peer) {
    std::printf("silent: closed\n");
    std::fflush(stdout);
    peer->client->close();  // ends its recv
  }

  sylar::IdleList<Peer> m_quiet, m_silent;
};

/// Runs a client until the server closes the connection or has sent ten pings.
int talk(const sylar::Address::ptr& address, bool answers) {
  const auto socket = sylar::Socket::CreateTCP(address);
  if (!socket->connect(address)) {
    std::perror("heartbeat: connect");
    return 1;
  }
  const char* const who = answers ? "who answers" : "who is silent";
  char bytes[64];
  int pings = 0;
  for (int n; pings < 10 && (n = socket->recv(bytes, sizeof bytes)) > 0;) {
    pings += static_cast<int>(std::count(bytes, bytes + n, '\n'));
    if (answers) socket->send("pong\n", 5);
  }
  std::printf("%s: %d pings%s\n", who, pings, pings < 10 ? ", then the end" : "");
  std::fflush(stdout);
  return 0;
}

int serve(const sylar::Address::ptr& address) {
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers
  sylar::IOManager iom(2, false, "heartbeat");
  const auto server = std::make_shared<HeartbeatServer>(iom, 1s, 3500ms);
  if (!server->bind(address) || !server->start()) return 1;
  std::printf("listening on %s\n", server->getSocks().front()->getLocalAddress()->toString().c_str());
  std::fflush(stdout);
  end.wait();
  server->stop();
  return server->join(sylar::Deadline::after(10s)) ? 0 : 1;
}

int show() {
  sylar::IOManager iom(2, false, "heartbeat");
  const auto server = std::make_shared<HeartbeatServer>(iom, 400ms, 1400ms);
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", 0)) || !server->start()) return 1;
  const auto address = server->getSocks().front()->getLocalAddress();
  std::thread silent([&] { talk(address, false); });
  const int result = talk(address, true);
  silent.join();
  server->stop();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return show();
  const std::string_view what = argv[1];
  const auto address = sylar::Address::LookupAny(argc > 2 ? argv[2] : "127.0.0.1:8012");
  if (address != nullptr && what == "serve") return serve(address);
  if (address != nullptr && what == "connect") return talk(address, argc < 4);
  std::fprintf(stderr, "heartbeat [serve [ADDRESS] | connect [ADDRESS [silent]]]\n");
  return 2;
}
