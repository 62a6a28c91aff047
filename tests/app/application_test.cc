#include "sylar/application.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sylar/config.h"
#include "sylar/iomanager.h"
#include "sylar/log.h"
#include "sylar/tcp_server.h"
#include "tests/support/busy.h"

namespace sylar {
namespace {

using namespace std::chrono_literals;

/// A server that serves nobody.
class Silent : public TcpServer {
 public:
  using TcpServer::TcpServer;
};

/// A folder of settings, and the application that reads it.
class ApplicationTest : public testing::Test {
 protected:
  ApplicationTest() {
    std::string pattern = testing::TempDir() + "applicationXXXXXX";
    folder = ::mkdtemp(pattern.data());
    workerSettings().setValue({});  // settings are the process's
    serverSettings().setValue({});
    Config::Lookup<uint64_t>("app.drain_ms")->setValue(10'000);
  }
  ~ApplicationTest() override { std::filesystem::remove_all(folder); }

  void write(const std::string& text) const { std::ofstream(folder / "all.yml") << text; }

  int main(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"service", "-c", folder.string()};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return app.main(static_cast<int>(words.size()), argv.data());
  }

  static void endService() { ::kill(::getpid(), SIGTERM); }

  std::filesystem::path folder;
  Application app;
};

TEST_F(ApplicationTest, CallsBackInOrderAndEndsWhenTold) {
  write("servers: [{type: silent, address: ['127.0.0.1:0']}]");
  std::string calls;
  app.addServerType<Silent>("silent");
  app.onServerReady([&] {
    calls += app.servers<Silent>().at(0)->isStop() ? "ready, " : "ready but accepting, ";
    EXPECT_EQ(IOManager::GetThis(), app.worker("")) << "in a fiber of the first worker";
  });
  app.onServerUp([&] {
    calls += app.servers<Silent>().at(0)->isStop() ? "up but not accepting, " : "up, ";
    endService();
  });
  app.onStop([&] { calls += app.servers<Silent>().at(0)->isStop() ? "stop" : "stop but accepting"; });
  EXPECT_EQ(main(), Application::kEnded);
  EXPECT_EQ(calls, "ready, up, stop");
}

// CD-G7: every documented key has an effect.
TEST_F(ApplicationTest, GivesAMakerItsSettingAndItsWorkers) {
  write(
      "workers: {a: {}, b: {}, c: {}}\n"
      "servers: [{type: silent, address: ['127.0.0.1:0'], id: '7', args: {n: 1}, accept_worker: a, io_worker: b, process_worker: "
      "c, name: x}]");
  ServerSetting seen;
  std::string workers;
  app.addServerType("silent", [&](const ServerSetting& setting, const Application::Workers& w) {
    seen = setting;
    workers = w.accept->getName() + w.io->getName() + w.process->getName();
    return std::make_shared<Silent>(w.process, w.io, w.accept);
  });
  app.onServerUp([&] {
    EXPECT_EQ(app.servers<Silent>().at(0)->getName(), "x");
    endService();
  });
  EXPECT_EQ(main(), Application::kEnded);
  EXPECT_EQ(seen.id, "7");
  EXPECT_EQ((LexicalCast<std::string, std::map<std::string, int>>()(seen.args.text)), (std::map<std::string, int>{{"n", 1}}));
  EXPECT_EQ(workers, "abc");
}

TEST_F(ApplicationTest, TakesTurnsAtWorkersOfOneName) {
  write("workers: {a: {worker_num: 2}}");
  app.onServerUp([&] {
    IOManager* const first = app.worker("a");
    EXPECT_NE(app.worker("a"), first);
    EXPECT_EQ(app.worker("a"), first);
    EXPECT_EQ(app.worker("b"), nullptr);
    endService();
  });
  EXPECT_EQ(main(), Application::kEnded);
}

TEST_F(ApplicationTest, EndsTheStartWhenACallbackThrows) {
  write("servers: [{type: silent, address: ['127.0.0.1:0']}]");
  app.addServerType<Silent>("silent");
  app.onServerReady([] { throw 42; });
  app.onServerUp([] { FAIL() << "it accepts"; });
  app.onStop([] { FAIL() << "it never ran"; });
  EXPECT_EQ(main(), Application::kNotStarted);
}

TEST_F(ApplicationTest, DrainsWhateverACallbackOfTheEndThrows) {
  write("");
  int calls = 0;
  app.onServerUp([] { endService(); });
  app.onStop([&] { ++calls, throw 42; });
  app.onStop([&] { ++calls, throw std::runtime_error("no"); });
  app.onStop([&] { ++calls; });
  EXPECT_EQ(main(), Application::kEnded);
  EXPECT_EQ(calls, 3);
}

TEST_F(ApplicationTest, AMakerThatMakesNothingIsAnError) {
  write("servers: [{type: none, address: ['127.0.0.1:0']}]");
  app.addServerType("none", [](const ServerSetting&, const Application::Workers&) { return nullptr; });
  EXPECT_EQ(main(), Application::kNotStarted);
}

TEST_F(ApplicationTest, ASignalToReloadIsKeptUntilItRuns) {
  write("app: {drain_ms: 10000}");
  app.onServerReady([] { ::kill(::getpid(), SIGHUP); });  // before anybody waits for it
  app.onServerUp([] { endService(); });
  EXPECT_EQ(main(), Application::kEnded);
}

TEST_F(ApplicationTest, EndsWhenToldWhileACallbackHangs) {
  write("");
  bool ended = false;
  app.onServerReady([&] {
    endService();
    ::sleep(1000);
    ended = this_fiber::cancelled();
  });
  app.onServerUp([] { FAIL() << "it runs"; });
  EXPECT_EQ(main(), Application::kEnded);
  EXPECT_TRUE(ended);
}

// A listener of the program may take its time: here until the end has begun.
TEST_F(ApplicationTest, EndsWhenToldWhileItReloads) {
  const auto setting = Config::Lookup("test.slow", 0);
  std::atomic<bool> stops{false}, reloaded{false};
  write("test: {slow: 1}");
  app.onServerUp([&] {
    setting->addListener([&](int, int) {
      endService();
      test::busyUntil([&] { return stops.load(); });
      reloaded = true;
    });
    write("test: {slow: 2}");
    ::kill(::getpid(), SIGHUP);
  });
  app.onStop([&] { stops = true; });
  EXPECT_EQ(main(), Application::kEnded);
  EXPECT_TRUE(reloaded) << "and it is waited for";
  setting->clearListener();
}

TEST_F(ApplicationTest, EndsThoughAListenerHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto setting = Config::Lookup("test.hangs", 0);
  const auto run = [&] {
    write("app: {drain_ms: 50}\ntest: {hangs: 1}");
    app.onServerUp([&] {
      setting->addListener([&](int, int) {
        endService();
        while (true) ::pause();
      });
      write("app: {drain_ms: 50}\ntest: {hangs: 2}");
      ::kill(::getpid(), SIGHUP);
    });
    main();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(Application::kTimedOut), "");
}

/// Collects the library's log in a file.
class ApplicationLogTest : public ApplicationTest {
 protected:
  std::string logSetting() const {
    return "logs: [{name: system, level: info, appenders: [{type: FileLogAppender, file: " + file() + "}]}]\n";
  }
  std::string log() const {
    LoggerMgr::GetInstance()->flush(Deadline::after(30s));
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string file() const { return folder / "log.txt"; }
};

TEST_F(ApplicationLogTest, AReloadNamesWhatWaitsForTheNextStart) {
  const auto own = Config::Lookup("test.reload", 0);
  const auto setting = [&](const std::string& name) { return "http: {request: {" + name + "}}\n"; };
  write(logSetting() + "test: {reload: 1}\n" + setting("max_body_size: 100"));
  app.onServerUp([&] {
    own->addListener([](int, int) { endService(); });
    write(logSetting() + "test: {reload: 2}\nfiber: {stack_size: 65536}\nworkers: {a: {}}\n" + setting("max_body_size: 1000"));
    ::kill(::getpid(), SIGHUP);
  });
  EXPECT_EQ(main(), Application::kEnded);
  const std::string text = log();
  EXPECT_NE(text.find("4 settings changed"), std::string::npos) << text;
  for (const char* name : {"http.request.max_body_size", "workers"}) {
    EXPECT_NE(text.find(name + std::string(" has changed, without an effect until")), std::string::npos) << text;
  }
  for (const char* name : {"fiber.stack_size has", "test.reload has", "http.request.max_headers has"}) {
    EXPECT_EQ(text.find(name), std::string::npos) << text;
  }
  EXPECT_NE(text.find("the service has ended"), std::string::npos) << text;
  own->clearListener();
}

TEST_F(ApplicationLogTest, WhatDidNotStartHasNotEnded) {
  write(logSetting());
  app.onServerReady([] { throw 42; });
  EXPECT_EQ(main(), Application::kNotStarted);
  EXPECT_EQ(log().find("has ended"), std::string::npos);
}

TEST_F(ApplicationTest, SaysWhichEntryHasTheAddress) {
  app.addServerType<Silent>("silent");
  const Socket::ptr held = Socket::CreateTCPSocket();  // does not listen: the port is free for the service, and for nobody else
  ASSERT_TRUE(held->bind(IPAddress::Create("0.0.0.0")));
  const std::string port = std::to_string(std::dynamic_pointer_cast<IPAddress>(held->getLocalAddress())->getPort());
  write("servers: [{type: silent, address: ['127.0.0.1:0', '0.0.0.0:" + port +
        "']}, {type: silent, address: ['localhost:" + port + "']}]");
  testing::internal::CaptureStderr();
  EXPECT_EQ(main(), Application::kNotStarted);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("cannot listen on 127.0.0.1:" + port), std::string::npos) << text;
  EXPECT_NE(text.find(", by servers[0].address[1], which listens on 0.0.0.0:" + port), std::string::npos) << text;
}

class TimerQueueSettingTest : public ApplicationTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Queues, TimerQueueSettingTest, testing::Values("heap", "binary_heap", "set", "wheel", "wheel_10ms"),
                         [](const auto& queue) { return std::string(queue.param); });

// CD-G7, timer.queue: a wheel rounds deadlines up to its tick, the others keep them to the nanosecond.
TEST_P(TimerQueueSettingTest, IsTheQueueOfTheWorkers) {
  constexpr int64_t kTickNs = 1'000'000;
  int on_a_tick = 0;
  app.onServerUp([&] {
    std::vector<ScopedTimer> timers;
    for (const std::chrono::nanoseconds delay : {3600s, 3000s, 2000s, 1000s, 900s, 800s, 700s, 600s}) {  // each is the front
      timers.emplace_back(*app.worker(""), delay, [] {});
      on_a_tick += app.worker("")->nextDueNs() % kTickNs == 0 ? 1 : 0;
    }
    endService();
  });
  write(std::string("timer: {queue: ") + GetParam() + "}");
  EXPECT_EQ(main(), Application::kEnded);
  EXPECT_EQ(on_a_tick == 8, std::string(GetParam()).starts_with("wheel")) << on_a_tick;
}

TEST_F(ApplicationTest, ToCheckIsNotToTake) {
  const auto setting = Config::Lookup("test.checked", 1);
  const uint64_t id = setting->addListener([](int, int) { FAIL() << "a listener is told"; });
  write("test: {checked: 2}");
  EXPECT_EQ(main({"--check-config"}), Application::kEnded);
  EXPECT_EQ(setting->getValue(), 1);
  setting->delListener(id);
  write("servers: [{type: none, address: ['127.0.0.1:1']}]");
  EXPECT_EQ(main({"--check-config"}), Application::kBadConfig);
}

TEST_F(ApplicationTest, ToCheckIsNotToRun) {
  write("servers: [{type: http, address: ['127.0.0.1:1']}]");
  app.onServerReady([] { FAIL() << "it runs"; });
  EXPECT_EQ(main({"--check-config"}), Application::kEnded);
  EXPECT_EQ(main({"--nonsense"}), Application::kBadConfig);
}

}  // namespace
}  // namespace sylar
