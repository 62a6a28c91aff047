// An echo server upon TcpServer: one class, one function, plain blocking calls. Ctrl-C: nobody new comes in, and who is connected
// is sent home when what he has sent is answered.
//
//   tcp_echo [ADDRESS] [WORKERS]      defaults: 127.0.0.1:8009, 2
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sylar/net/tcp_server.h"

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

int main(int argc, char** argv) {
  sigset_t end;  // blocked before there are workers, so that only sigwait takes them
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  sylar::IOManager iom(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2, false, "echo");
  const auto server = std::make_shared<EchoServer>(&iom, &iom, &iom);
  const auto address = sylar::Address::LookupAny(argc > 1 ? argv[1] : "127.0.0.1:8009");
  if (address == nullptr || !server->bind(address) || !server->start()) {
    std::perror("tcp_echo");
    return 1;
  }
  std::printf("listening on %s\n", server->getSocks().front()->getLocalAddress()->toString().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&end, &signal);
  server->stop();
  return server->join(sylar::Deadline::after(std::chrono::seconds(10))) ? 0 : 1;
}
