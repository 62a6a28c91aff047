#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdarg>
#include <string>
#include <vector>

#include "sylar/base/sys.h"
#include "sylar/log.h"
#include "tests/log/recorder.h"

// A program's own name, at global scope and made before main: the library exports none. CD-L4, Trap 1
sylar::Logger::ptr g_logger = SYLAR_LOG_NAME("macros");

namespace sylar {
namespace {

using Lines = std::vector<std::string>;

class Macros : public testing::Test {
 protected:
  Macros() {
    g_logger->setLevel(LogLevel::DEBUG);
    g_logger->addAppender(m_recorder);
  }
  ~Macros() override { g_logger->clearAppenders(); }
  Lines lines() { return m_recorder->lines(); }

  test::Recorder::ptr m_recorder = std::make_shared<test::Recorder>("%p %m");
};

TEST_F(Macros, EachLogsAtItsLevel) {
  SYLAR_LOG_DEBUG(g_logger) << 1;
  SYLAR_LOG_INFO(g_logger) << 2;
  SYLAR_LOG_WARN(g_logger) << 3;
  SYLAR_LOG_ERROR(g_logger) << 4;
  SYLAR_LOG_FATAL(g_logger) << 5;
  SYLAR_LOG_LEVEL(g_logger, LogLevel::WARN) << 6;
  EXPECT_EQ(lines(), (Lines{"DEBUG 1", "INFO 2", "WARN 3", "ERROR 4", "FATAL 5", "WARN 6"}));
}

TEST_F(Macros, PrintfStyleTakesAnyNumberOfArguments) {
  SYLAR_LOG_FMT_DEBUG(g_logger, "none");
  SYLAR_LOG_FMT_INFO(g_logger, "%d", 0);
  SYLAR_LOG_FMT_WARN(g_logger, "%s %05.1f", "two", 2.0);
  SYLAR_LOG_FMT_ERROR(g_logger, "100%%");
  SYLAR_LOG_FMT_FATAL(g_logger, "%p", static_cast<void*>(nullptr));
  EXPECT_EQ(lines(), (Lines{"DEBUG none", "INFO 0", "WARN two 002.0", "ERROR 100%", "FATAL (nil)"}));
}

TEST_F(Macros, TutorialsNames) {
  SYLAR_LOG_NOTICE(g_logger) << 1;
  SYLAR_LOG_CRIT(g_logger) << 2;
  SYLAR_LOG_ALERT(g_logger) << 3;
  SYLAR_LOG_FMT_NOTICE(g_logger, "%d", 4);
  SYLAR_LOG_FMT_CRIT(g_logger, "%d", 5);
  SYLAR_LOG_FMT_ALERT(g_logger, "%d", 6);
  EXPECT_EQ(lines(), (Lines{"INFO 1", "ERROR 2", "ERROR 3", "INFO 4", "ERROR 5", "ERROR 6"}));
}

TEST_F(Macros, ArgumentsAreEvaluatedOnlyIfTheLevelPasses) {
  int evaluated = 0;
  g_logger->setLevel(LogLevel::ERROR);
  SYLAR_LOG_WARN(g_logger) << ++evaluated;
  SYLAR_LOG_FMT_WARN(g_logger, "%d", ++evaluated);
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(lines(), Lines{});
  SYLAR_LOG_ERROR(g_logger) << ++evaluated;
  SYLAR_LOG_FMT_ERROR(g_logger, "%d", ++evaluated);
  EXPECT_EQ(evaluated, 2);
  EXPECT_EQ(lines(), (Lines{"ERROR 1", "ERROR 2"}));
}

// CD-L2
TEST_F(Macros, AreStatements) {
  for (const bool first : {true, false}) {
    if (first)
      SYLAR_LOG_INFO(g_logger) << "streamed if";
    else
      SYLAR_LOG_INFO(g_logger) << "streamed else";
    if (first)
      SYLAR_LOG_FMT_INFO(g_logger, "printed if");
    else
      SYLAR_LOG_FMT_INFO(g_logger, "printed else");
  }
  SYLAR_LOG_INFO(g_logger);
  EXPECT_EQ(lines(), (Lines{"INFO streamed if", "INFO printed if", "INFO streamed else", "INFO printed else", "INFO "}));
}

TEST_F(Macros, SayWhereAndWho) {
  m_recorder->setFormatter(std::make_shared<LogFormatter>("%c %f:%l %t %N %F"));
  SYLAR_LOG_INFO(g_logger);
  const std::string place = std::string(__FILE__) + ":" + std::to_string(__LINE__ - 1);
  char name[16];
  ASSERT_EQ(::pthread_getname_np(::pthread_self(), name, sizeof name), 0);
  EXPECT_EQ(lines(), Lines{"macros " + place + " " + std::to_string(sys::threadId()) + " " + name + " 0"});
}

TEST_F(Macros, EventsTakeVaLists) {
  const auto print = [](const LogEvent::ptr& event, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    event->format(format, arguments);
    va_end(arguments);
  };
  {
    const LogEventWrap wrap(LogEvent::make(g_logger, LogLevel::INFO, __FILE__, __LINE__));
    print(wrap.getEvent(), "%d %s", 1, "two");
    wrap.getEvent()->format(" %d", 0);  // sylar took this 0 for a va_list
  }
  EXPECT_EQ(lines(), Lines{"INFO 1 two 0"});
}

}  // namespace
}  // namespace sylar
