// The library's settings in a program without an Application, as most programs of sylar are.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sylar/config.h"
#include "sylar/fiber.h"
#include "sylar/hook.h"
#include "sylar/iomanager.h"
#include "sylar/log.h"
#include "sylar/socket.h"
#include "sylar/testing/virtual_time.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

// Statics of the program, with sylar's types and with wrong ones: the library's settings exist before them.
const auto g_connect_timeout = Config::Lookup<int>("tcp.connect.timeout", 1, "tcp connect timeout");
const auto g_stack_size = Config::Lookup<uint32_t>("fiber.stack_size", 1, "fiber stack size");
const auto g_read_timeout = Config::Lookup("tcp_server.read_timeout", uint64_t{1}, "tcp server read timeout");
const auto g_wrong = Config::Lookup<std::string>("tcp.connect.timeout", "soon");

TEST(WithoutApplication, TheSettingsHaveSylarsTypesAndTheLibrarysDefaults) {
  ASSERT_NE(g_connect_timeout, nullptr);
  ASSERT_NE(g_stack_size, nullptr);
  ASSERT_NE(g_read_timeout, nullptr);
  EXPECT_EQ(g_wrong, nullptr);
  EXPECT_EQ(g_connect_timeout->getValue(), 5000);
  EXPECT_EQ(g_read_timeout->getValue(), 120'000u);
  EXPECT_THROW(g_connect_timeout->setValue(-1), std::invalid_argument) << "the library's check";
}

/// A listener whose queue is full, so that a connect waits.
class FullListener {
 public:
  FullListener() {
    EXPECT_TRUE(m_listener->bind(IPAddress::Create("127.0.0.1")));
    EXPECT_TRUE(m_listener->listen(0));
    EXPECT_TRUE(m_first->connect(m_listener->getLocalAddress()));
  }
  Address::ptr address() const { return m_listener->getLocalAddress(); }

 private:
  const Socket::ptr m_listener = Socket::CreateTCPSocket();
  const Socket::ptr m_first = Socket::CreateTCPSocket();
};

TEST(WithoutApplication, TheConnectTimeoutActs) {
  VirtualTime time;
  std::chrono::nanoseconds waited{};
  Config::Lookup("tcp.connect.timeout", 5000)->setValue(300);
  time.run([&] {
    const FullListener full;
    const auto before = time.elapsed();
    EXPECT_FALSE(Socket::CreateTCPSocket()->connect(full.address()));
    EXPECT_EQ(errno, ETIMEDOUT);
    waited = time.elapsed() - before;
  });
  EXPECT_EQ(waited, 300ms);
}

TEST(WithoutApplication, TheSettingOfFilesActs) {
  EXPECT_TRUE(hookFiles());
  Config::Lookup("hook.files", true)->fromString("off");
  EXPECT_FALSE(hookFiles());
  Config::Lookup("hook.files", true)->setValue(true);
  EXPECT_TRUE(hookFiles());
}

TEST(WithoutApplication, TheSettingOfTheEngineActs) {
  const auto setting = Config::Lookup("io.engine", std::string("auto"));
  EXPECT_EQ(ioEngine(), IOEngine::kAuto);
  setting->fromString("epoll");
  EXPECT_EQ(ioEngine(), IOEngine::kEpoll);
  setting->fromString("uring");
  EXPECT_EQ(ioEngine(), IOEngine::kUring);
  EXPECT_ANY_THROW(setting->setValue("aio"));
  setting->setValue("auto");
  EXPECT_EQ(ioEngine(), IOEngine::kAuto);
}

TEST(WithoutApplication, TheSettingOfLocksActs) {
  EXPECT_TRUE(hookLocks());
  Config::Lookup("hook.locks", true)->fromString("off");
  EXPECT_FALSE(hookLocks());
  Config::Lookup("hook.locks", true)->setValue(true);
  EXPECT_TRUE(hookLocks());
}

TEST(WithoutApplication, TheSettingOfClosesActs) {
  const auto setting = Config::Lookup("hook.close", std::string("wake"));
  EXPECT_EQ(hookClose(), HookClose::kWake);
  setting->setValue("posix");
  EXPECT_EQ(hookClose(), HookClose::kPosix);
  setting->setValue("wake");
  EXPECT_EQ(hookClose(), HookClose::kWake);
}

TEST(WithoutApplication, SylarsLogFileChangesTheLoggers) {
  std::string folder = testing::TempDir() + "no_applicationXXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/out.txt";
  std::ofstream(folder + "/log.yml") << "logs:\n  - name: demo\n    level: info\n    formatter: '%c %m%n'\n    appenders:\n"
                                        "      - type: FileLogAppender\n        file: "
                                     << file << "\n";
  const LoadResult result = Config::LoadFromConfDir(folder);
  EXPECT_TRUE(result.ok() && result.unknown.empty()) << result.toString();
  SYLAR_LOG_DEBUG(SYLAR_LOG_NAME("demo")) << "not this";
  SYLAR_LOG_INFO(SYLAR_LOG_NAME("demo")) << "this";
  LoggerMgr::GetInstance()->flush(Deadline::after(30s));
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "demo this\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sylar
