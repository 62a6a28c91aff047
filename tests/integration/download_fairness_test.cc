// Ten downloads by libcurl on one worker leave the other fibers of the worker their turns. What the worker computes between two
// turns of a ticker is counted, so a machine that runs something else meanwhile makes no difference.
#include <curl/curl.h>

#include <algorithm>
#include <string>

#include "tests/hook/support.h"
#include "tests/support/sanitized.h"

namespace sylar::test {
namespace {

constexpr int kDownloads = 10;
constexpr size_t kSize = 8 << 20;

/// Serves each connection on a thread of its own, with libc's calls: a head, and kSize bytes as fast as the client takes them.
class FastServer {
 public:
  FastServer() : m_listener(boundSocket(libcCalls(), SOCK_STREAM)) {
    for (int i = 0; i < kDownloads; ++i) m_threads.emplace_back([this] { serve(); });
  }
  ~FastServer() {
    for (std::thread& thread : m_threads) thread.join();
    libcCalls().close(m_listener);
  }
  FastServer(const FastServer&) = delete;
  FastServer& operator=(const FastServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(ntohs(addressOf(m_listener).sin_port)) + "/"; }

 private:
  void serve() const {
    const Calls& libc = libcCalls();
    const int fd = libc.accept(m_listener, nullptr, nullptr);
    std::string head;
    for (char byte = 0; !head.ends_with("\r\n\r\n") && libc.read(fd, &byte, 1) == 1;) head += byte;
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kSize) + "\r\n\r\n" + std::string(kSize, 'x');
    for (size_t sent = 0; sent < answer.size();) {
      const ssize_t n = libc.send(fd, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    libc.close(fd);
  }

  const int m_listener;
  std::vector<std::thread> m_threads;
};

size_t takeBytes(const char*, size_t size, size_t count, void* got) {
  *static_cast<size_t*>(got) += size * count;
  return size * count;
}

int64_t cpuNs() {
  timespec now{};
  EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// HA-6
TEST(DownloadFairness, TenDownloadsLeaveATickerItsTurns) {
  constexpr int64_t kTickNs = 5'000'000;
  constexpr int64_t kGapNs = 50'000'000;
  FastServer server;
  int going = kDownloads;
  size_t got = 0;
  int ticks = 0;
  int64_t worst_gap_ns = 0;
  inFiber([&] {
    for (int i = 0; i < kDownloads; ++i) {
      Scheduler::GetThis()->schedule([&] {
        CURL* const curl = ::curl_easy_init();
        ::curl_easy_setopt(curl, CURLOPT_URL, server.url().c_str());
        ::curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &takeBytes);
        ::curl_easy_setopt(curl, CURLOPT_WRITEDATA, &got);
        EXPECT_EQ(::curl_easy_perform(curl), CURLE_OK);
        ::curl_easy_cleanup(curl);
        --going;
      });
    }
    while (going > 0) {
      const int64_t before = cpuNs();
      ::usleep(kTickNs / 1000);
      worst_gap_ns = std::max(worst_gap_ns, cpuNs() - before);
      ++ticks;
    }
  });
  EXPECT_EQ(got, kDownloads * kSize);
  EXPECT_GT(ticks, 0);
  if (!kSanitized) {
    EXPECT_LE(worst_gap_ns, kGapNs) << "in " << ticks << " ticks";
  }
  RecordProperty("worst_gap_us", std::to_string(worst_gap_ns / 1000));
}

}  // namespace
}  // namespace sylar::test
