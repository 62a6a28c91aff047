#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sylar/base/log.h"
#include "sylar/log.h"
#include "tests/log/directory.h"
#include "tests/log/recorder.h"
#include "tests/support/scale.h"

namespace sylar {
namespace {

constexpr int kThreads = 4;

template <class Body>
void onThreads(Body body) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back([&, thread] { body(thread); });
  for (std::thread& thread : threads) thread.join();
}

// An event of several lines stays in one piece, in the order of its thread, and none is lost.
TEST(LogRace, EventsOfManyThreadsAreWholeAndInOrder) {
  const test::Directory directory;
  const std::string path = directory / "x.log";
  const Logger::ptr logger = std::make_shared<Logger>("race");
  logger->setFormatter("%m%n");
  logger->addAppender(std::make_shared<FileLogAppender>(path));
  const auto events = static_cast<int>(test::scaled(2'000));
  onThreads([&](int thread) {
    for (int i = 0; i < events; ++i) SYLAR_LOG_INFO(logger) << thread << " " << i << "\n" << thread << " " << i;
  });
  logger->clearAppenders();
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  std::istringstream in(test::contentOf(path));
  std::vector<int> next(kThreads, 0);
  for (std::string first, second; std::getline(in, first) && std::getline(in, second);) {
    ASSERT_EQ("\t" + first, second);
    std::istringstream parts(first);
    int thread = -1, i = -1;
    parts >> thread >> i;
    ASSERT_TRUE(thread >= 0 && thread < kThreads);
    ASSERT_EQ(i, next[static_cast<size_t>(thread)]++);
  }
  EXPECT_EQ(next, std::vector<int>(kThreads, events));
}

TEST(LogRace, LoggersAreChangedWhileTheyAreUsed) {
  const test::Directory directory;
  LoggerManager& manager = *LoggerMgr::GetInstance();
  manager.getRoot()->clearAppenders();
  manager.getRoot()->addAppender(std::make_shared<FileLogAppender>(directory / "root.log"));
  const auto rounds = static_cast<int>(test::scaled(100));
  std::atomic<int> appliers{0};
  onThreads([&](int thread) {
    const std::string path = directory / ("x" + std::to_string(thread % 2) + ".log");
    for (int i = 0; i < rounds; ++i) {
      const Logger::ptr logger = SYLAR_LOG_NAME("changed");
      SYLAR_LOG_INFO(logger) << i;
      if (thread < 2) {
        LogDefine define{.name = "changed", .level = i % 2 == 0 ? "info" : "debug"};
        define.appenders = {{.type = "FileLogAppender", .file = path, .formatter = i % 3 == 0 ? "%m%n" : ""}};
        EXPECT_TRUE(manager.apply({define}).empty());
        ++appliers;
      } else {
        const auto recorder = std::make_shared<test::Recorder>();
        logger->addAppender(recorder);
        logger->setFormatter(i % 2 == 0 ? "%d %m%n" : "%N %m%n");
        log::debug("number {}", i);
        logger->setLevel(LogLevel::DEBUG);
        logger->delAppender(recorder);
        EXPECT_FALSE(manager.toYamlString().empty());
      }
    }
  });
  EXPECT_EQ(appliers, 2 * rounds);
  EXPECT_TRUE(manager.apply({}).empty());
  EXPECT_EQ(SYLAR_LOG_NAME("changed")->toYamlString().find("appenders"), std::string::npos);
}

// Writers of one path come and go: each line is in the file once.
TEST(LogRace, FilesAreSharedAndLetGo) {
  const test::Directory directory;
  const std::string path = directory / "x.log";
  const auto rounds = static_cast<int>(test::scaled(100));
  onThreads([&](int) {
    for (int i = 0; i < rounds; ++i) {
      const Logger::ptr logger = std::make_shared<Logger>("short");
      logger->setFormatter("%m%n");
      logger->addAppender(std::make_shared<FileLogAppender>(path));
      SYLAR_LOG_INFO(logger) << "line";
    }
  });
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  const std::string all = test::contentOf(path);
  EXPECT_EQ(std::ranges::count(all, '\n'), kThreads * rounds);
}

}  // namespace
}  // namespace sylar
