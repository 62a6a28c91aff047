// A child of fork(2) may log, whatever the parent's threads were doing. FM-21
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sylar/log.h"
#include "tests/log/directory.h"
#include "tests/support/scale.h"

namespace sylar {
namespace {

// Formats while it holds its lock, as sylar's own appenders did.
class UnderItsLock : public LogAppender {
 public:
  void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) override {
    MutexType::Lock lock(m_mutex);
    m_last = m_formatter->format(logger, level, event);
  }
  std::string toYamlString() override { return "type: UnderItsLock\n"; }

 private:
  std::string m_last;
};

int exitStatusOf(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void childrenLogUnderLoadOf(const Logger::ptr& logger) {
  const test::Directory directory;
  const std::string path = directory / "x.log";
  logger->setFormatter("%d{%S} %m%n");
  logger->addAppender(std::make_shared<FileLogAppender>(path));
  logger->addAppender(std::make_shared<UnderItsLock>());
  std::atomic<int> logged{0};
  const auto log = [&] {
    SYLAR_LOG_INFO(logger) << "parent";
    if (++logged % 64 == 0) ::usleep(1);
  };
  std::vector<std::jthread> threads;
  threads.emplace_back([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) log();
  });
  threads.emplace_back([&](const std::stop_token& stop) {
    const LogFormatter::ptr formatters[] = {std::make_shared<LogFormatter>("%d{%S} %m%n"),
                                            std::make_shared<LogFormatter>("%d{%M} %m%n")};
    for (size_t n = 0; !stop.stop_requested(); ++n) {
      logger->setFormatter(formatters[n % 2]);  // another time each time: localtime_r is asked
      log();
    }
  });
  const auto forks = static_cast<int>(test::scaled(100));
  for (int i = 0; i < forks; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(10);  // instead of hanging
      SYLAR_LOG_INFO(logger) << "child " << i;
      ::_exit(LoggerMgr::GetInstance()->flush(Deadline::after(std::chrono::seconds(10))) ? 7 : 1);
    }
    ASSERT_EQ(exitStatusOf(child), 7);
  }
  threads.clear();
  logger->clearAppenders();
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());

  // Each line is there once.
  std::istringstream in(test::contentOf(path));
  std::map<std::string, int> counts;
  for (std::string line; std::getline(in, line);) ++counts[line.substr(3)];
  EXPECT_EQ(counts["parent"], logged.load());
  for (int i = 0; i < forks; ++i) EXPECT_EQ(counts["child " + std::to_string(i)], 1) << i;
}

TEST(Fork, ChildLogsUnderLoadOfItsParent) { childrenLogUnderLoadOf(SYLAR_LOG_NAME("forks")); }

// sylar's way to a logger that no manager knows.
TEST(Fork, ChildLogsWithALoggerOfItsOwnUnderLoadOfItsParent) { childrenLogUnderLoadOf(std::make_shared<Logger>("own")); }

// daemon(3): the parent ends with _exit.
TEST(Fork, WritesFirstWhatIsQueued) {
  const test::Directory directory;
  const std::string path = directory / "x.log";
  const Logger::ptr logger = SYLAR_LOG_NAME("daemon");
  logger->setFormatter("%m%n");
  logger->addAppender(std::make_shared<FileLogAppender>(path));
  for (int i = 0; i < 20;) {
    const pid_t parent = ::fork();
    if (parent == 0) {
      SYLAR_LOG_INFO(logger) << i << " before";
      const auto begin = std::chrono::steady_clock::now();
      const pid_t daemon = ::fork();
      const auto took = std::chrono::steady_clock::now() - begin;
      if (daemon != 0) ::_exit(took < std::chrono::milliseconds(100) ? 0 : 2);
      SYLAR_LOG_INFO(logger) << i << " daemon";
      ::_exit(LoggerMgr::GetInstance()->flush() ? 0 : 1);
    }
    const int status = exitStatusOf(parent);
    if (status == 2) continue;  // a fork waits no longer, and the writer had no processor for so long
    ASSERT_EQ(status, 0);
    const std::string before = std::to_string(i++) + " before\n";
    EXPECT_NE(test::contentOf(path).find(before), std::string::npos);
  }
  logger->clearAppenders();
}

}  // namespace
}  // namespace sylar
