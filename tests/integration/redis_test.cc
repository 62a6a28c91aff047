// Unmodified hiredis, in fibers, against a real redis.
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "tests/hook/support.h"
#include "tests/integration/child.h"
#include "tests/support/stopwatch.h"

namespace sylar::test {
namespace {

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
using Context = std::unique_ptr<redisContext, FreeContext>;
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

template <class... Args>
Reply command(const Context& context, const char* format, Args... args) {
  Reply reply(static_cast<redisReply*>(redisCommand(context.get(), format, args...)));
  EXPECT_NE(reply, nullptr) << context->errstr;
  return reply;
}

/// A server of its own, on a free port, which keeps nothing.
class Redis : public testing::Test {
 protected:
  void SetUp() override {
    start();
    ASSERT_TRUE(answers()) << "redis-server does not start";
  }
  void TearDown() override { libcCalls().close(m_port_holder); }

  Context connect() const {
    Context context(redisConnect("127.0.0.1", m_port));
    EXPECT_NE(context, nullptr);
    EXPECT_EQ(context->err, 0) << context->errstr;
    return context;
  }

 private:
  void start() {
    m_port_holder = boundSocket(libcCalls(), SOCK_STREAM, -1);
    const int on = 1;
    EXPECT_EQ(::setsockopt(m_port_holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);  // redis-server may listen there, too
    m_port = ntohs(addressOf(m_port_holder).sin_port);
    m_server = std::make_unique<Child>(std::vector<std::string>{"redis-server", "--port", std::to_string(m_port), "--bind",
                                                                "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "/tmp",
                                                                "--loglevel", "warning"});
    for (int i = 0; i < 2'400 && !answers(); ++i) ::usleep(25'000);
  }

  bool answers() const {
    if (m_server == nullptr) return false;
    const Context context(redisConnect("127.0.0.1", m_port));
    if (context == nullptr || context->err != 0) return false;
    const Reply reply(static_cast<redisReply*>(redisCommand(context.get(), "PING")));
    return reply != nullptr && std::string(reply->str, reply->len) == "PONG";
  }

  std::unique_ptr<Child> m_server;
  int m_port_holder = -1;  // bound, so that nobody else gets the port
  int m_port = 0;
};

// HA-6. One waits for what the other brings: without the hooks the only worker would wait forever.
TEST_F(Redis, TwoFibersOfOneThreadTalkToItAtTheSameTime) {
  const LeakCheck leaks;
  std::string got;
  bool pushed = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      const Context context = connect();
      // Only when the other one stands in its BLPOP.
      while (true) {
        const Reply clients = command(context, "CLIENT LIST");
        if (std::string(clients->str, clients->len).find("cmd=blpop") != std::string::npos) break;
        ::usleep(1000);
      }
      pushed = true;
      EXPECT_EQ(command(context, "LPUSH %s %s", "list", "handed over")->integer, 1);
    });
    const Context context = connect();
    const Reply reply = command(context, "BLPOP %s 0", "list");
    ASSERT_EQ(reply->type, REDIS_REPLY_ARRAY);
    ASSERT_EQ(reply->elements, 2u);
    got.assign(reply->element[1]->str, reply->element[1]->len);
    EXPECT_TRUE(pushed);
  });
  EXPECT_EQ(got, "handed over");
}

/// One fiber's share of commands: every reply is checked.
void talk(const Context& context, int id, int commands) {
  const std::string key = "key:" + std::to_string(id);
  for (int i = 0; i < commands && !testing::Test::HasFailure(); i += 4) {
    const std::string value = std::string(static_cast<size_t>(1 + (id * 31 + i) % 3000), static_cast<char>('a' + i % 26));
    const Reply set = command(context, "SET %s %b", key.c_str(), value.data(), value.size());
    EXPECT_EQ(std::string(set->str, set->len), "OK");
    const Reply get = command(context, "GET %s", key.c_str());
    EXPECT_EQ(std::string(get->str, get->len), value);
    EXPECT_EQ(command(context, "INCR %s:n", key.c_str())->integer, i / 4 + 1);
    const Reply echo = command(context, "ECHO %d:%d", id, i);
    EXPECT_EQ(std::string(echo->str, echo->len), std::to_string(id) + ':' + std::to_string(i));
  }
}

// HA-6
TEST_F(Redis, HundredFibersOnTwoWorkersDo100000Commands) {
  const LeakCheck leaks;
  constexpr int kFibers = 100;
  constexpr int kCommands = 1000;
  std::atomic<int> finished{0};
  {
    IOManager iom(2, false, "redis");
    for (int id = 0; id < kFibers; ++id) {
      iom.schedule([&, id] {
        const Context context = connect();
        const pid_t thread = threadId();
        talk(context, id, kCommands);
        EXPECT_EQ(threadId(), thread);
        finished.fetch_add(1);
      });
    }
  }
  EXPECT_EQ(finished.load(), kFibers);
  EXPECT_EQ(command(connect(), "DBSIZE")->integer, 2 * kFibers);
}

// A promised bound, of hiredis itself: its timeouts are SO_RCVTIMEO and poll.
TEST_F(Redis, ItsTimeoutsHold) {
  inFiber([&] {
    const Context context = connect();
    EXPECT_EQ(redisSetTimeout(context.get(), timeval{0, 100'000}), REDIS_OK);
    const Stopwatch watch;
    EXPECT_EQ(redisCommand(context.get(), "BLPOP nothing 0"), nullptr);
    const auto elapsed = watch.elapsed();
    EXPECT_EQ(context->err, REDIS_ERR_IO);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_GE(elapsed, std::chrono::milliseconds(100));
    EXPECT_LT(elapsed, watch.allows(std::chrono::seconds(2)));
  });
}

}  // namespace
}  // namespace sylar::test
