// SO_SNDTIMEO of an AF_UNIX stream limits each wait for room, not the whole write, as in the kernel (sock_alloc_send_pskb begins
// with the whole timeout for each buffer). On virtual time: only those who wait move the clock.
#include <chrono>

#include "sylar/testing/virtual_time.h"
#include "tests/hook/support.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

using Write = ssize_t (*)(int fd, const char* data, size_t size);

struct UnixWriteTimeout : testing::TestWithParam<Write> {};

/// Takes 100 KB every 600 ms.
void readSlowly(int fd, size_t size) {
  std::vector<char> buffer(100'000);
  for (size_t done = 0; done < size;) {
    ::usleep(600'000);
    size_t taken = 0;
    while (taken < buffer.size()) {
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size() - taken, MSG_DONTWAIT);
      if (n <= 0) break;
      taken += static_cast<size_t>(n);
    }
    done += taken;
  }
}

TEST_P(UnixWriteTimeout, CountsForEachPiece) {
  constexpr size_t kSize = 2'000'000;
  VirtualTime time;
  time.run([] {
    const Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.b, SO_SNDTIMEO, 1'000'000);
    const auto reader = std::make_shared<Fiber>([&pair] { readSlowly(pair.a, kSize); });
    IOManager::GetThis()->schedule(reader);
    const std::vector<char> bytes(kSize, 'x');
    EXPECT_EQ(GetParam()(pair.b, bytes.data(), bytes.size()), static_cast<ssize_t>(kSize));
    reader->join();
  });
  EXPECT_GE(time.elapsed(), 5s);
}

TEST_P(UnixWriteTimeout, EndsAWriteThatNobodyReads) {
  constexpr size_t kSize = 2'000'000;
  VirtualTime time;
  time.run([] {
    const Pair pair = unixPair();
    setTimeout(hookedCalls(), pair.b, SO_SNDTIMEO, 1'000'000);
    const std::vector<char> bytes(kSize, 'x');
    const ssize_t n = GetParam()(pair.b, bytes.data(), bytes.size());
    EXPECT_GT(n, 0);
    EXPECT_LT(n, static_cast<ssize_t>(kSize));
    EXPECT_EQ(GetParam()(pair.b, bytes.data(), bytes.size()), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
  EXPECT_EQ(time.elapsed(), 2s);
}

INSTANTIATE_TEST_SUITE_P(Calls, UnixWriteTimeout,
                         testing::Values([](int fd, const char* data, size_t size) { return ::write(fd, data, size); },
                                         [](int fd, const char* data, size_t size) { return ::send(fd, data, size, 0); },
                                         [](int fd, const char* data, size_t size) {
                                           const iovec part{const_cast<char*>(data), size};
                                           return ::writev(fd, &part, 1);
                                         }));

}  // namespace
}  // namespace sylar::test
