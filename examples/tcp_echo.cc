// An echo server based on TcpServer: one class, one function, plain blocking calls. On Ctrl-C it stops accepting, answers the
// data that clients have sent, and closes their connections.
//
//   tcp_echo [ADDRESS] [WORKERS]      defaults: 127.0.0.1:8009, 2
#include <cstdio>
#include <cstdlib>

#include "sylar/signal_wait.h"
#include "sylar/tcp_server.h"

// [server]
class EchoServer : public sylar::TcpServer {
 public:
  using TcpServer::TcpServer;

 protected:
  void handleClient(sylar::Socket::ptr client) override {
    char buffer[4096];
    int n;
    while ((n = client->recv(buffer, sizeof buffer)) > 0 && client->send(buffer, static_cast<size_t>(n)) == n) {
    }
  }
  void endClient(sylar::Socket::ptr client) override { client->shutdown(SHUT_RD); }
};
// [server]

int main(int argc, char** argv) {
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers
  sylar::IOManager iom(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2, false, "echo");
  const auto server = std::make_shared<EchoServer>(&iom, &iom, &iom);
  server->setIdentity(sylar::FiberIdentity::kWorker);  // its handler calls no library; half the memory of a thread of its own
  const auto address = sylar::Address::LookupAny(argc > 1 ? argv[1] : "127.0.0.1:8009");
  if (address == nullptr || !server->bind(address) || !server->start()) {
    std::perror("tcp_echo");
    return 1;
  }
  std::printf("listening on %s\n", server->getSocks().front()->getLocalAddress()->toString().c_str());
  std::fflush(stdout);
  end.wait();
  server->stop();
  return server->join(sylar::Deadline::after(std::chrono::seconds(10))) ? 0 : 1;
}
