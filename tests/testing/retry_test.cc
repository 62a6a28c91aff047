// What virtual time is for: a client that tries again for a day, with pauses that double, against a server that is down, then
// hangs, then is busy. Client and server are ordinary blocking code that knows nothing of virtual time; a day takes milliseconds,
// and every run is the same.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sylar/base/fd.h"
#include "sylar/iomanager.h"
#include "sylar/testing/virtual_time.h"
#include "tests/support/fibers.h"
#include "tests/support/scale.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// ---- The client. -------------------------------------------------------------------------------------------------------------

/// One question: the answer, or why there is none.
std::string ask(const sockaddr_un& server, socklen_t size) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{30, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&server), size) != 0)
    return errno == ECONNREFUSED ? "refused" : "error";
  if (write(fd.get(), "?", 1) != 1) return "error";
  char answer[16];
  const ssize_t count = read(fd.get(), answer, sizeof answer);
  return count < 0 ? (errno == EAGAIN ? "no answer" : "error") : std::string(answer, static_cast<size_t>(count));
}

/// 1 s, 2 s, 4 s ... up to an hour; each up to a tenth longer, so that many clients do not come at once.
class Backoff {
 public:
  explicit Backoff(uint32_t seed) : m_random(seed) {}
  milliseconds next() {
    const milliseconds pause = m_pause + milliseconds(m_random() % (static_cast<uint64_t>(m_pause.count()) / 10));
    m_pause = std::min<milliseconds>(2 * m_pause, 1h);
    return pause;
  }

 private:
  std::mt19937 m_random;
  milliseconds m_pause = 1s;
};

/// Asks until there is an "ok", for a day at most. `note` is told of each attempt.
bool askForADay(const sockaddr_un& server, socklen_t size, const std::function<void(const std::string&)>& note) {
  Backoff backoff(1);
  for (milliseconds waited{0}; waited < 24h;) {
    const std::string answer = ask(server, size);
    note(answer);
    if (answer == "ok") return true;
    const milliseconds pause = backoff.next();
    usleep(static_cast<useconds_t>(std::chrono::microseconds(pause % 1s).count()));
    sleep(static_cast<unsigned>(pause / 1s));
    waited += pause;
  }
  return false;
}

// ---- The server. -------------------------------------------------------------------------------------------------------------

/// Six hours down, six hours hanging, then busy.
void serve(int listener) {
  sleep(6 * 3600);
  bool hangs = true;
  IOManager::GetThis()->addTimer(6 * 3'600'000, [&hangs] { hangs = false; });
  if (listen(listener, 16) != 0) return;
  for (;;) {
    const UniqueFd peer(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.valid()) return;  // the test is over
    char question;
    if (read(peer.get(), &question, 1) != 1) continue;
    if (hangs) {
      sleep(300);
    } else if (write(peer.get(), "busy", 4) != 4) {
      return;
    }
  }
}

// ---- The test. ---------------------------------------------------------------------------------------------------------------

/// The client's day: what it was told, and when.
std::vector<std::string> aDay() {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof(sa_family_t);  // the kernel chooses a name
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  size = sizeof address;
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);

  std::vector<std::string> trace;
  VirtualTime time;
  time.run([&] {
    IOManager::GetThis()->schedule([&] { serve(listener.get()); });
    const auto note = [&](const std::string& answer) {
      trace.push_back(fmt::format("{} ms: {}", std::chrono::floor<milliseconds>(time.elapsed()).count(), answer));
    };
    EXPECT_FALSE(askForADay(address, size, note));
    note("gave up");
  });
  EXPECT_GE(time.elapsed(), 24h);
  EXPECT_LT(time.elapsed(), 26h);
  return trace;
}

size_t countOf(const std::vector<std::string>& trace, const std::string& answer) {
  return static_cast<size_t>(
      std::ranges::count_if(trace, [&](const std::string& line) { return line.ends_with(": " + answer); }));
}

// Virtual time: a day of retries gives the same trace each time; scripts/soak.sh looks 1 000 times.
TEST(Retry, ADayOfRetriesIsTheSameEachTime) {
  const LeakCheck leaks;
  const std::vector<std::string> first = aDay();
  EXPECT_GT(countOf(first, "refused"), 10U);
  EXPECT_GT(countOf(first, "no answer"), 3U);
  EXPECT_GT(countOf(first, "busy"), 3U);
  EXPECT_EQ(countOf(first, "error"), 0U);
  EXPECT_EQ(countOf(first, "gave up"), 1U);
  for (const std::string& line : first) std::cout << line << "\n";
  const uint64_t rounds = scaled(20);
  for (uint64_t i = 1; i < rounds; ++i) ASSERT_EQ(aDay(), first) << "round " << i;
}

}  // namespace
}  // namespace sylar::test
