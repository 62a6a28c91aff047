// A request takes no memory when nothing new happens. System calls are counted in tests/integration/http_steady_test.py.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "tests/http/client.h"

namespace {

std::atomic<uint64_t> g_allocations{0};
std::atomic<uint64_t> g_input_blocks{0};

}  // namespace

void* operator new(size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t alignment) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (static_cast<size_t>(alignment) == 512) g_input_blocks.fetch_add(1, std::memory_order_relaxed);
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

// P-9: the one block of the thread serves all of them. None holds it while it waits for its first request, or for another.
TEST(SteadyState, IdleConnectionHasNoInputBlock) {
  test::Serving<> server(true, {}, 1);
  server.on("/hello", [](HttpRequest::ptr, HttpResponse::ptr, HttpSession::ptr) { return 0; });
  const uint64_t before = g_input_blocks;
  std::vector<std::unique_ptr<test::Client>> silent, kept;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(std::make_unique<test::Client>(server.port()));
    kept.push_back(std::make_unique<test::Client>(server.port()));
    ask(kept.back()->fd(), 3);  // by then the worker has looked for bytes of the silent one
  }
  EXPECT_LE(g_input_blocks - before, 1u);
}

}  // namespace
}  // namespace sylar::http
