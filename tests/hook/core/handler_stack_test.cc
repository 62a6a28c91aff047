// A signal handler with a stack of its own is never suspended: the next handler of the thread would run over it. Its calls wait
// as libc's do, and no other fiber runs meanwhile.
#include <csignal>

#include "sylar/base/sanitizers.h"
#include "tests/hook/fd/counted_buffer.h"
#include "tests/hook/fd/kinds.h"
#include "tests/support/coroutine.h"

#ifdef SYLAR_TSAN
/// The thread raises the signal itself, while it holds nothing, so the handler may allocate memory.
extern "C" const char* __tsan_default_options() { return "history_size=4:report_signal_unsafe=0"; }
#endif

namespace sylar::test {
namespace {

#ifdef SYLAR_TSAN
constexpr bool kCoroutines = false;  // it takes another stack for deep calls
#else
constexpr bool kCoroutines = true;
#endif

std::function<void()>* g_in_handler = nullptr;
bool g_handling = false;

using Install = decltype(&::sigaction);

/// Runs `body` in a handler with SA_ONSTACK that `install` has installed. It interrupts a fiber whose worker has another one to
/// run, in a coroutine of the fiber's if `in_coroutine`.
void inHandlerOver(Install install, bool in_coroutine, std::function<void()> body) {
  struct sigaction handler {};
  handler.sa_flags = SA_ONSTACK;
  handler.sa_handler = [](int) {
    g_handling = true;
    (*g_in_handler)();
    g_handling = false;
  };
  struct sigaction before {};
  ASSERT_EQ(install(SIGUSR1, &handler, &before), 0);
  g_in_handler = &body;
  int ran = 0;
  inFiber([&ran, in_coroutine] {
    std::vector<char> stack(256 * 1024);
    const stack_t own{stack.data(), 0, stack.size()};
    stack_t was{};
    ASSERT_EQ(::sigaltstack(&own, &was), 0);
    IOManager::GetThis()->schedule([&ran] {
      EXPECT_FALSE(g_handling);
      ++ran;
    });
    in_coroutine ? inCoroutine([] { ::raise(SIGUSR1); }) : void(::raise(SIGUSR1));
    EXPECT_EQ(ran, 0);
    ASSERT_EQ(::sigaltstack(&was, nullptr), 0);
  });
  EXPECT_EQ(ran, 1);
  install(SIGUSR1, &before, nullptr);
}

/// The hooks know of the handler by its trampoline or, if libc has installed it without their knowledge, by its stack.
void inHandlerOnItsOwnStack(const std::function<void()>& body) {
  const auto libcs = reinterpret_cast<Install>(::dlsym(::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "sigaction"));
  for (const Install install : {&::sigaction, libcs}) {
    SCOPED_TRACE(install == libcs ? "installed by libc" : "installed by the hooks");
    for (const bool in_coroutine : {false, true}) inHandlerOver(install, in_coroutine && kCoroutines, body);
  }
}

/// What another thread does, most likely when the handler waits already.
class Later {
 public:
  explicit Later(std::function<void(const Calls&)> action)
      : m_thread([action = std::move(action)] {
          const timespec moment{0, 2'000'000};
          libcCalls().nanosleep(&moment, nullptr);
          action(libcCalls());
        }) {}
  ~Later() { m_thread.join(); }

 private:
  std::thread m_thread;
};

TEST(HandlerOnItsOwnStack, Sleeps) {
  inHandlerOnItsOwnStack([] {
    EXPECT_EQ(::usleep(1000), 0);
    const timespec moment{0, 1'000'000};
    EXPECT_EQ(::nanosleep(&moment, nullptr), 0);
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr), 0);
    EXPECT_EQ(::poll(nullptr, 0, 1), 0);
  });
}

TEST(HandlerOnItsOwnStack, Reads) {
  const Pair pair = unixPair();
  const auto after = [&pair](const std::function<ssize_t()>& call) {
    const Later feeder([&pair](const Calls& libc) { EXPECT_EQ(libc.write(pair.b, "abc", 3), 3); });
    EXPECT_EQ(call(), 3);
  };
  inHandlerOnItsOwnStack([&] {
    char buffer[8];
    iovec part{buffer, sizeof buffer};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    after([&] { return ::read(pair.a, buffer, sizeof buffer); });
    after([&] { return ::readv(pair.a, &part, 1); });
    after([&] { return ::recv(pair.a, buffer, sizeof buffer, 0); });
    after([&] { return ::recv(pair.a, buffer, 3, MSG_WAITALL); });
    after([&] { return ::recvfrom(pair.a, buffer, sizeof buffer, 0, nullptr, nullptr); });
    after([&] { return ::recvmsg(pair.a, &message, 0); });
    CountedBuffer late;
    after([&] { return receiveIntoPool(pair.a, late, 0); });
    EXPECT_TRUE(late.held);
    pollfd in{pair.a, POLLIN, 0};
    after([&] { return ::poll(&in, 1, -1) == 1 ? ::read(pair.a, buffer, sizeof buffer) : -1; });
  });
}

TEST(HandlerOnItsOwnStack, WritesEverything) {
  constexpr size_t kSize = 1'000'000;
  const std::vector<char> bytes = streamBytes(kSize);
  const Pair pair = unixPair();
  const auto after = [&](const std::function<ssize_t()>& call) {
    std::vector<char> got(kSize);
    {
      const Later reader([&](const Calls& libc) {
        EXPECT_EQ(libc.recv(pair.a, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(kSize));
      });
      EXPECT_EQ(call(), static_cast<ssize_t>(kSize));
    }
    EXPECT_EQ(got, bytes);
  };
  inHandlerOnItsOwnStack([&] {
    iovec part{const_cast<char*>(bytes.data()), kSize};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    after([&] { return ::write(pair.b, bytes.data(), kSize); });
    after([&] { return ::writev(pair.b, &part, 1); });
    after([&] { return ::send(pair.b, bytes.data(), kSize, 0); });
    after([&] { return ::sendmsg(pair.b, &message, 0); });
  });
}

TEST(HandlerOnItsOwnStack, AcceptsAndConnects) {
  Owned owned;
  const int listener = owned.keep(boundSocket(hookedCalls(), SOCK_STREAM));
  inHandlerOnItsOwnStack([&] {
    EXPECT_EQ(connectTo(hookedCalls(), owned.keep(::socket(AF_INET, SOCK_STREAM, 0)), addressOf(listener)), 0);
    const int first = ::accept(listener, nullptr, nullptr);
    EXPECT_GE(first, 0);
    ::close(first);
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    {
      const Later connects([&](const Calls& libc) { EXPECT_EQ(connectTo(libc, client, addressOf(listener)), 0); });
      const int second = ::accept(listener, nullptr, nullptr);
      EXPECT_GE(second, 0);
      ::close(second);
    }
    ::close(client);
  });
}

// Cause: the call after 64 that did not wait went to the back of the queue, handler or not.
TEST(HandlerOnItsOwnStack, DoesNotTakeTurns) {
  const Pair pair = unixPair(SOCK_DGRAM);
  inHandlerOnItsOwnStack([&] {
    char byte;
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(::write(pair.b, "x", 1), 1);
      EXPECT_EQ(::read(pair.a, &byte, 1), 1);
    }
  });
}

}  // namespace
}  // namespace sylar::test
