// This program counts every allocation, so it brings its own operator new.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "sylar/http/request_reader.h"
#include "sylar/http/response_writer.h"

namespace {
size_t g_allocations = 0;
}

void* operator new(size_t size) {
  ++g_allocations;
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace sylar::http {
namespace {

// A peer that sends the same request again and again.
class Repeating : public ByteSource {
 public:
  explicit Repeating(std::string_view request) : m_request(request) {}
  ssize_t read(char* buffer, size_t size, std::chrono::nanoseconds) override {
    const size_t count = m_request.copy(buffer, size, m_at);
    m_at = (m_at + count) % m_request.size();
    return static_cast<ssize_t>(count);
  }

 private:
  std::string_view m_request;
  size_t m_at = 0;
};

class Counting : public ByteSink {
 public:
  bool writeAll(std::span<iovec>) override {
    ++m_calls;
    return true;
  }
  size_t m_calls = 0;
};

// P-13
TEST(SteadyState, OfARequestAllocatesNothingAndWritesOnce) {
  for (const std::string_view sent :
       {"GET /a/rather/long/path/so/that/no/small/string/holds/it?and=a&long=query&string=too HTTP/1.1\r\nHost: "
        "127.0.0.1:8080\r\n"
        "User-Agent: a browser\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n28\r\n0123456789012345678901234567890123456789\r\n0\r\n"
        "X-Trailer: a value\r\n\r\n"}) {
    Repeating source(sent);
    Counting sink;
    const HttpLimits limits;
    RequestReader reader(source, sink, limits);
    ResponseWriter writer(sink);
    HttpRequest request;
    HttpResponse response;
    const auto serve = [&] {
      ASSERT_TRUE(reader.read(request).ok());
      response.reset(request.getVersion(), request.isClose());
      response.setHeader("content-type", "text/plain; charset=utf-8");
      response.body().assign("a body that is longer than a small string");
      writer.startRequest();
      ASSERT_TRUE(writer.write(request, response));
      ASSERT_TRUE(reader.finishBody());
    };
    for (int i = 0; i < 10; ++i) serve();
    const size_t before = g_allocations, calls = sink.m_calls;
    for (int i = 0; i < 1000; ++i) serve();
    EXPECT_EQ(g_allocations, before);
    EXPECT_EQ(sink.m_calls, calls + 1000);
  }
}

}  // namespace
}  // namespace sylar::http
