// A request takes no memory when nothing new happens. System calls are counted in tests/integration/http_steady_test.py.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/http/client.h"

namespace {

std::atomic<uint64_t> g_allocations{0};

}  // namespace

void* operator new(size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace sylar::http {
namespace {

/// Asks `times` times, without memory of its own.
void ask(int fd, int times) {
  static constexpr char kRequest[] = "GET /hello HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";
  char answer[1024];
  for (int i = 0; i < times; ++i) {
    ASSERT_EQ(::send(fd, kRequest, sizeof kRequest - 1, 0), static_cast<ssize_t>(sizeof kRequest - 1));
    ASSERT_GT(::recv(fd, answer, sizeof answer, 0), 0);
  }
}

// P-13
TEST(SteadyState, RequestAllocatesNothing) {
  test::Serving<> server(true, {}, 1);
  const std::string body = "hello, this is longer than what a string holds in itself";
  server.on("/hello", [&](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setHeader("content-type", "text/plain");
    response->body() = body;
    return 0;
  });
  test::Client client(server.port());
  ask(client.fd(), 100);
  const uint64_t before = g_allocations;
  ask(client.fd(), 1000);
  EXPECT_LT(g_allocations - before, 10u);  // what grows once, a queue of timeouts, say, is no cost of a request
}

}  // namespace
}  // namespace sylar::http
