// Heartbeats upon IdleList: a server that asks who is quiet, "ping", and closes who is silent; a client that answers, "pong", or
// not. Every line that is no "pong" is sent back.
//
//   heartbeat                               shows it: a server, a client that answers, and one that does not
//   heartbeat serve [ADDRESS]               default: 127.0.0.1:8012
//   heartbeat connect [ADDRESS [silent]]
//
// Two lists, as there are two times: each has one timeout for all its peers, so a line that comes moves the peer to the end of
// both, and no timer is touched, however many peers there are. TcpServer::setIdleTimeout() would not do here: it counts both
// ways, and each ping would be traffic.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "sylar/net/tcp_server.h"
#include "sylar/timer/idle_list.h"

using namespace std::chrono_literals;

namespace {

class HeartbeatServer : public sylar::TcpServer {
 public:
  HeartbeatServer(sylar::IOManager& iom, std::chrono::milliseconds quiet, std::chrono::milliseconds silent)
      : TcpServer(&iom, &iom, &iom), m_quiet(iom, quiet, ask), m_silent(iom, silent, end) {
    setRecvTimeout(0);  // the lists look after that
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

  /// Does not wait for a peer that takes nothing: the others wait for this to return.
  static void ask(const std::shared_ptr<Peer>& peer) {
    peer->client->send("ping\n", 5, MSG_DONTWAIT);
    peer->quiet.touch();  // once more in a while
  }
  static void end(const std::shared_ptr<Peer>& peer) {
    std::printf("silent: closed\n");
    std::fflush(stdout);
    peer->client->close();  // its recv ends
  }

  sylar::IdleList<Peer> m_quiet, m_silent;
};

/// Until the server ends the connection, or has sent ten pings.
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
  sigset_t end;  // blocked before there are workers, so that only sigwait takes them
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  sylar::IOManager iom(2, false, "heartbeat");
  const auto server = std::make_shared<HeartbeatServer>(iom, 1s, 3500ms);
  if (!server->bind(address) || !server->start()) return 1;
  std::printf("listening on %s\n", server->getSocks().front()->getLocalAddress()->toString().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&end, &signal);
  server->stop();
  return server->join(sylar::Deadline::after(10s)) ? 0 : 1;
}

int show() {
  sylar::IOManager iom(2, false, "heartbeat");
  const auto server = std::make_shared<HeartbeatServer>(iom, 100ms, 350ms);
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
