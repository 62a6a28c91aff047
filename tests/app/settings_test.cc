#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "sylar/app_settings.h"
#include "sylar/config.h"
#include "sylar/fiber.h"
#include "sylar/http/limits.h"
#include "sylar/tcp_server.h"
#include "sylar/timer.h"
#include "tests/support/beside_program.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

void load(const std::string& text) {
  const LoadResult result = Config::LoadFromYaml(YAML::Load(text), UnknownKeys::kRefuse);
  ASSERT_TRUE(result.ok()) << result.toString();
}

TEST(LibrarySettings, HaveTheDefaultsOfTheirStructs) {
  const http::HttpLimits limits = httpLimitsSetting(), defaults;
  EXPECT_EQ(limits.max_body, defaults.max_body);
  EXPECT_EQ(limits.head_timeout, defaults.head_timeout);
  EXPECT_EQ(tcpServerLimitsSetting().max_connections, TcpServerLimits{}.max_connections);
  EXPECT_EQ(readTimeoutSetting(), 120'000u);
  EXPECT_EQ(idleTimeoutSetting(), 0u);
  EXPECT_EQ(drainSetting(), 10s);
  EXPECT_EQ(maxWaitSetting(), 0ms);
  EXPECT_EQ(spinSetting(), 0us);
  EXPECT_EQ(trimAfterSetting(), 0ms);
  EXPECT_EQ(timerQueueSetting(), kDefaultTimerQueue);
  EXPECT_EQ(pidFileSetting(), "");
}

TEST(LibrarySettings, ReachTheirStructs) {
  load(
      "http: {request: {max_body_size: 7, max_params: 3, max_cookies: 2, min_body_rate: 9}, idle_timeout_ms: 11, "
      "write_timeout_ms: 12}");
  EXPECT_EQ(httpLimitsSetting().write_timeout, 12ms);
  EXPECT_EQ(httpLimitsSetting().max_body, 7u);
  EXPECT_EQ(httpLimitsSetting().max_params, 3u);
  EXPECT_EQ(httpLimitsSetting().max_cookies, 2u);
  EXPECT_EQ(httpLimitsSetting().min_body_rate, 9u);
  EXPECT_EQ(httpLimitsSetting().idle_timeout, 11ms);
  load("http: {request: {max_bodies_size: 8}}");
  EXPECT_EQ(httpLimitsSetting().max_bodies, 8u);
  load("http: {request: {max_peer_bodies_size: 9, short_body_rate: 10}}");
  EXPECT_EQ(httpLimitsSetting().max_peer_bodies, 9u);
  EXPECT_EQ(httpLimitsSetting().short_body_rate, 10u);
  load("tcp_server: {max_connections: 5, max_per_peer: 4, limit_loopback: true, backlog: 3, read_timeout: 2, idle_timeout: 6}");
  EXPECT_EQ(tcpServerLimitsSetting().max_connections, 5u);
  EXPECT_EQ(tcpServerLimitsSetting().max_per_peer, 4u);
  EXPECT_TRUE(tcpServerLimitsSetting().limit_loopback);
  EXPECT_EQ(tcpServerLimitsSetting().backlog, 3);
  EXPECT_EQ(readTimeoutSetting(), 2u);
  EXPECT_EQ(idleTimeoutSetting(), 6u);
  load("timer: {queue: set}");
  EXPECT_EQ(timerQueueSetting(), TimerQueueKind::kOrderedSet);
  load("timer: {queue: wheel}");
  EXPECT_EQ(timerQueueSetting(), TimerQueueKind::kWheel);
  load("timer: {queue: wheel_10ms}");
  EXPECT_EQ(timerQueueSetting(), TimerQueueKind::kWheel10Ms);
  load("timer: {queue: binary_heap}");
  EXPECT_EQ(timerQueueSetting(), TimerQueueKind::kBinaryHeap);
  load("timer: {queue: heap}");
  EXPECT_EQ(timerQueueSetting(), TimerQueueKind::kFourAryHeap);
  EXPECT_EQ(identitySetting(), FiberIdentity::kOwn);
  load("fiber: {identity: worker}");
  EXPECT_EQ(identitySetting(), FiberIdentity::kWorker);
  load("io: {max_wait_ms: 3000, spin_us: 50}\napp: {drain_ms: 1}\nhook: {watchdog_ms: 70}\nfiber: {trim_after_ms: 9}");
  EXPECT_EQ(trimAfterSetting(), 9ms);
  EXPECT_EQ(maxWaitSetting(), 3000ms);
  EXPECT_EQ(spinSetting(), 50us);
  EXPECT_EQ(drainSetting(), 1ms);
  EXPECT_EQ(watchdogSetting(), 70ms);
}

TEST(LibrarySettings, ThePidFileCountsFromTheWorkPath) {
  load("server: {pid_file: a.pid}");
  EXPECT_EQ(pidFileSetting(), "a.pid");
  load("server: {work_path: /run/demo}");
  EXPECT_EQ(pidFileSetting(), "/run/demo/a.pid");
  load("server: {pid_file: /tmp/a.pid}");
  EXPECT_EQ(pidFileSetting(), "/tmp/a.pid");
}

TEST(LibrarySettings, AreAllInTheReference) {
  std::ifstream file(test::besideProgram(SYLAR_SETTINGS_PAGE));
  const std::string reference{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(reference.empty());
  Config::Visit([&](const ConfigVarBase::ptr& var) {
    const std::string name = var->getName();
    EXPECT_NE(reference.find(name.substr(name.rfind('.') + 1)), std::string::npos) << name;
    EXPECT_FALSE(var->getDescription().empty()) << name;
  });
}

/// Where the stack is after so many calls.
[[gnu::noinline]] uintptr_t descend(int levels) {
  volatile char frame[1024] = {};
  frame[levels % 1024] = 1;
  const uintptr_t deepest = levels == 0 ? reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) : descend(levels - 1);
  return deepest + frame[levels % 1024] - 1;
}

// fiber.stack_size acts at once: a depth for which the default is too small.
TEST(LibrarySettings, TheStackSizeIsThatOfFibersFromNowOn) {
  load("fiber: {stack_size: 4194304}");
  size_t used = 0;
  const auto fiber =
      std::make_shared<Fiber>([&] { used = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - descend(3000); });
  fiber->resume();
  EXPECT_GT(used, size_t{1'000'000});
}

}  // namespace
}  // namespace sylar
