// A line that a fiber logs suspends it never, with the hooks linked, whatever the device does. FM-36
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "sylar/compat/fiber_id.h"
#include "sylar/iomanager.h"
#include "sylar/log.h"
#include "tests/log/directory.h"
#include "tests/log/recorder.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

class InAFiber : public testing::Test {
 protected:
  InAFiber() { m_logger->setFormatter("%F %m%n"); }

  /// Runs `body` in a fiber on a worker on which another fiber wants to run all the time; how often it has run meanwhile.
  int othersDuring(std::function<void()> body) {
    int others = 0, during = -1;
    bool done = false;
    test::inFiber([&] {
      IOManager::GetThis()->schedule([&] {
        while (!done) {
          ++others;
          Fiber::YieldToReady();
        }
      });
      while (others == 0) Fiber::YieldToReady();  // from here on it runs whenever this one is suspended
      const int before = others;
      body();
      during = others - before;
      done = true;
    });
    return during;
  }

  const test::Directory m_directory;
  const Logger::ptr m_logger = std::make_shared<Logger>("fiber");
};

TEST_F(InAFiber, LoggingToAFileAndFlushingDoesNotSuspend) {
  const std::string path = m_directory / "x.log";
  std::string wanted;
  EXPECT_EQ(othersDuring([&] {
              m_logger->addAppender(std::make_shared<FileLogAppender>(path));
              for (int i = 0; i < 1'000; ++i) {
                SYLAR_LOG_INFO(m_logger) << i;
                wanted += std::to_string(GetFiberId()) + " " + std::to_string(i) + "\n";
              }
              SYLAR_LOG_FATAL(m_logger) << "fatal";
              wanted += std::to_string(GetFiberId()) + " fatal\n";
              EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
              m_logger->clearAppenders();
            }),
            0);
  EXPECT_EQ(test::contentOf(path), wanted);
}

TEST_F(InAFiber, LoggingToAStuckDeviceNeitherSuspendsNorWaits) {
  const std::string path = m_directory / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  const auto appender = std::make_shared<FileLogAppender>(path);
  m_logger->addAppender(appender);
  EXPECT_EQ(othersDuring([&] {
              const std::string line(1'000, 'x');
              while (appender->lost() == 0) SYLAR_LOG_INFO(m_logger) << line;  // until pipe and queue are full
              SYLAR_LOG_FATAL(m_logger) << line;
            }),
            0);
  EXPECT_GE(appender->lost(), 1u);
  ::close(reader);  // what is left has nowhere to go
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
}

// A daemon closes all descriptors. That of the log is the library's own.
TEST_F(InAFiber, ClosingWhateverThereIsLeavesTheLogAlone) {
  const std::string path = m_directory / "x.log";
  m_logger->addAppender(std::make_shared<FileLogAppender>(path));
  for (int fd = 3; fd < 256; ++fd) ::close(fd);
  const int next = ::open("/dev/null", O_RDONLY);
  SYLAR_LOG_INFO(m_logger) << "line";
  m_logger->clearAppenders();
  EXPECT_TRUE(LoggerMgr::GetInstance()->flush());
  EXPECT_EQ(test::contentOf(path), "0 line\n");
  EXPECT_EQ(::close(next), 0);
}

TEST_F(InAFiber, LinesTellTheFibersId) {
  const auto recorder = std::make_shared<test::Recorder>("%F");
  m_logger->addAppender(recorder);
  SYLAR_LOG_INFO(m_logger);
  uint64_t id = 0;
  test::inFiber([&] {
    id = GetFiberId();
    SYLAR_LOG_INFO(m_logger);
  });
  EXPECT_NE(id, 0u);
  EXPECT_EQ(recorder->lines(), (std::vector<std::string>{"0", std::to_string(id)}));
}

}  // namespace
}  // namespace sylar
