// A client that reads slowly, in real time.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

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
  std::string piece(128 * 1024, ' ');
  // A client that the machine has kept from reading for long is rightly cut: then another one reads.
  for (bool late = true; late;) {
    full = false;
    test::Client client(server.port());
    client.say("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!full) sched_yield();
    size_t taken = 0;
    std::chrono::nanoseconds longest_pause{0};
    auto last_read = std::chrono::steady_clock::now();
    for (int i = 0; taken < kSize; ++i) {
      if (i < 25) ::usleep(100'000);
      const ssize_t count = ::recv(client.fd(), piece.data(), piece.size(), 0);
      const auto now = std::chrono::steady_clock::now();
      longest_pause = std::max<std::chrono::nanoseconds>(longest_pause, now - std::exchange(last_read, now));
      if (count <= 0) break;
      taken += static_cast<size_t>(count);
    }
    late = taken < kSize && longest_pause >= limits.write_timeout / 2;
    EXPECT_TRUE(late || taken >= kSize) << taken;
  }
}

}  // namespace
}  // namespace sylar::http
