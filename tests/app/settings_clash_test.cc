// A program that makes settings of the library's names with other types, before the library can.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "sylar/app_settings.h"
#include "sylar/application.h"
#include "sylar/config.h"
#include "sylar/http/limits.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

ConfigVar<std::string>::ptr g_timeout, g_max_body, g_workers, g_logs;

// Before every static object, and linked before the library, so that it comes first.
[[gnu::constructor(101)]] void makeSettingsOfOtherTypes() {
  g_timeout = Config::Lookup("tcp.connect.timeout", std::string("a while"));
  g_max_body = Config::Lookup("http.request.max_body_size", std::string("much"));
  g_workers = Config::Lookup("workers", std::string("many"));
  g_logs = Config::Lookup("logs", std::string("none"));
}

TEST(SettingsOfOtherTypes, LeaveTheLibraryItsDefaults) {
  ASSERT_NE(g_timeout, nullptr) << "the program came first";
  ASSERT_NE(g_max_body, nullptr);
  ASSERT_NE(g_workers, nullptr);
  ASSERT_NE(g_logs, nullptr);
  EXPECT_EQ(httpLimitsSetting().max_body, http::HttpLimits{}.max_body);
  EXPECT_EQ(workerSettings().getValue(), WorkerSettings{});
  EXPECT_EQ(drainSetting(), 10s) << "one that the program did not touch";
  EXPECT_EQ(g_timeout->getValue(), "a while") << "and the program its own";
}

TEST(SettingsOfOtherTypes, DoNotKeepAnApplicationFromRunning) {
  std::string folder = testing::TempDir() + "settings_clashXXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  Application app;
  app.onServerUp([] { ::kill(::getpid(), SIGTERM); });
  std::string words[] = {"service", "-c", folder};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  EXPECT_EQ(app.main(3, argv), Application::kEnded);
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace sylar
