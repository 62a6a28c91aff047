// A client that reads slowly, in real time.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

#include "tests/http/client.h"

namespace sylar::http {
namespace {

using namespace std::chrono_literals;

// SEC-10: its kernel tells of room only when it has taken much.
TEST(HttpSlowReader, PeerThatTakesLittleButSomethingIsNotCut) {
  HttpLimits limits;
  limits.write_timeout = 2s;
  test::Serving<> server(true, limits);
  std::atomic<bool> full{false};
  constexpr size_t kSize = 16 << 20;  // more than the kernel takes
  server.on("/large", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody(std::string(kSize, 'x'));
    full = true;
    return 0;
  });
  test::Client client(server.port());
  client.say("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  while (!full) sched_yield();
  std::string piece(128 * 1024, ' ');
  size_t taken = 0;
  for (int i = 0; i < 25; ++i) {
    ::usleep(100'000);
    const ssize_t count = ::recv(client.fd(), piece.data(), piece.size(), 0);
    if (count > 0) taken += static_cast<size_t>(count);
  }
  for (ssize_t count; taken < kSize && (count = ::recv(client.fd(), piece.data(), piece.size(), 0)) > 0;) {
    taken += static_cast<size_t>(count);
  }
  EXPECT_GE(taken, kSize);
}

}  // namespace
}  // namespace sylar::http
