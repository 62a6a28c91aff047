// A request by a pattern takes no memory when nothing new happens. This program counts every allocation, so it brings its own
// operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "sylar/http/router.h"
#include "tests/http/client.h"

namespace {
std::atomic<uint64_t> g_allocations{0};
}

void* operator new(size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t alignment) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::aligned_alloc(static_cast<size_t>(alignment), size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace sylar::http {
namespace {

/// Asks `times` times, without memory of its own.
void ask(int fd, int times) {
  static constexpr char kRequest[] = "GET /keys/a-short-one/v/1/2 HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\n\r\n";
  char answer[1024];
  for (int i = 0; i < times; ++i) {
    ASSERT_EQ(::send(fd, kRequest, sizeof kRequest - 1, 0), static_cast<ssize_t>(sizeof kRequest - 1));
    ASSERT_GT(::recv(fd, answer, sizeof answer, 0), 0);
  }
}

void expectNoAllocation(const Router::ptr& router) {
  router->get("/keys/{key}/v/{rest...}",
              [](HttpRequest&, HttpResponse& response) { response.setStatus(HttpStatus::NO_CONTENT); });
  test::Serving<> server(true, {}, 1);
  server->setServletDispatch(router);
  test::Client client(server.port());
  ask(client.fd(), 100);
  const uint64_t before = g_allocations;
  ask(client.fd(), 1000);
  EXPECT_LT(g_allocations - before, 10u);  // what grows once, a queue of timeouts, say, is no cost of a request
}

// P-13, WEB-L22
TEST(RouterSteadyState, RequestAllocatesNothing) { expectNoAllocation(std::make_shared<Router>()); }

// P-13
TEST(RouterSteadyState, MiddlewareAllocatesNothing) {
  const auto router = std::make_shared<Router>();
  for (int i = 0; i < 3; ++i) router->use([](HttpRequest&, HttpResponse&, const Next& next) { next(); });
  expectNoAllocation(router);
}

}  // namespace
}  // namespace sylar::http
