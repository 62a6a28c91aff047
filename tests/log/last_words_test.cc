// Lines that were logged before a crash are in the file, whatever the process died of. Each case is a child that dies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "sylar/base/sanitizers.h"
#include "sylar/fiber.h"
#include "sylar/log.h"
#include "sylar/macro.h"
#include "tests/log/directory.h"

namespace sylar {
namespace {

void logLines(const std::string& path, int lines) {
  const auto logger = std::make_shared<Logger>("dying");
  logger->setFormatter("%p %m%n");
  logger->addAppender(std::make_shared<FileLogAppender>(path));
  for (int i = 0; i < lines; ++i) SYLAR_LOG_INFO(logger) << "line " << i;
  SYLAR_LOG_ERROR(logger) << "last words";
}

/// The wait status of a child that runs `body`.
int statusOfChild(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);  // reports of what it dies of
    body();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool killedBy(int status, int signal) {
#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
  return status != 0 && signal != 0;  // its runtime reports the signal, and exits
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
#endif
}

/// The ERROR line is the last one of `path`, and the lines before are there, all of them.
void expectLines(const std::string& path, int lines) {
  std::string expected;
  for (int i = 0; i < lines; ++i) expected += "INFO line " + std::to_string(i) + "\n";
  EXPECT_TRUE(test::contentOf(path) == expected + "ERROR last words\n") << test::contentOf(path).size() << " bytes";
}

[[gnu::noinline]] int recurse(int levels) {
  volatile char frame[256];
  frame[0] = static_cast<char>(levels);
  return levels == 0 ? frame[0] : recurse(levels - 1) + frame[0];
}

void inFiber(const std::function<void()>& body) { std::make_shared<Fiber>(body)->resume(); }

[[gnu::noinline]] void throwError() { throw std::runtime_error("nobody catches it"); }
void throwOutOfNoexcept() noexcept { throwError(); }

struct Death {
  const char* name;
  int signal;
  std::function<void()> die;
};

const Death kDeaths[] = {
    {"abort", SIGABRT, [] { std::abort(); }},
    {"segv", SIGSEGV, [] { *static_cast<volatile char*>(nullptr) = 1; }},
    {"sent segv", SIGSEGV, [] { ::raise(SIGSEGV); }},
    {"bus", SIGBUS, [] { ::raise(SIGBUS); }},
    {"fpe", SIGFPE, [] { ::raise(SIGFPE); }},
    {"ill", SIGILL, [] { __builtin_trap(); }},
    {"terminate", SIGABRT, throwOutOfNoexcept},
    {"uncaught in a thread", SIGABRT, [] { std::thread(throwError).join(); }},
    {"check", SIGABRT, [] { SYLAR_ASSERT2(false, "for a test"); }},
};

class LastWords : public testing::Test {
 protected:
  const test::Directory m_directory;
  const std::string m_path = m_directory / "x.log";
};

TEST_F(LastWords, AreInTheFile) {
  for (const Death& death : kDeaths) {
    for (int round = 0; round < 20; ++round) {
      const std::string path = m_path + std::to_string(round);
      EXPECT_TRUE(killedBy(statusOfChild([&] {
                             logLines(path, 0);
                             death.die();
                           }),
                           death.signal))
          << death.name;
      expectLines(path, 0);
      ::unlink(path.c_str());
    }
  }
}

TEST_F(LastWords, AreInTheFileBehindThousandsOfLines) {
  const int lines = 20'000;
  for (const Death& death : kDeaths) {
    statusOfChild([&] {
      logLines(m_path, lines);
      death.die();
    });
    SCOPED_TRACE(death.name);
    expectLines(m_path, lines);
    ::unlink(m_path.c_str());
  }
}

// On the alternate signal stack, below or above the handler that reports an overflow.
TEST_F(LastWords, OfAFiberAreInTheFile) {
  for (const bool fibers_first : {false, true}) {
    for (const Death& death : kDeaths) {
      EXPECT_TRUE(killedBy(statusOfChild([&] {
                             if (fibers_first) inFiber([] {});
                             inFiber([&] {
                               logLines(m_path, 100);
                               death.die();
                             });
                           }),
                           death.signal))
          << death.name;
      SCOPED_TRACE(death.name);
      expectLines(m_path, 100);
      ::unlink(m_path.c_str());
    }
  }
}

TEST_F(LastWords, OfAFiberThatOverflowsAreInTheFile) {
  for (const bool fibers_first : {false, true}) {
    EXPECT_TRUE(killedBy(statusOfChild([&] {
                           if (fibers_first) inFiber([] {});
                           inFiber([&] {
                             logLines(m_path, 100);
                             recurse(1 << 20);
                           });
                         }),
                         SIGABRT));
    expectLines(m_path, 100);
    ::unlink(m_path.c_str());
  }
}

// All files, each by its own thread.
TEST_F(LastWords, AreInEachFile) {
  statusOfChild([&] {
    for (int i = 0; i < 5; ++i) logLines(m_path + std::to_string(i), 1000);
    std::abort();
  });
  for (int i = 0; i < 5; ++i) expectLines(m_path + std::to_string(i), 1000);
}

// The program's own handler, which was there before, decides how the process ends.
TEST_F(LastWords, EarlierHandlerIsCalledAfterwards) {
  static std::string path;
  path = m_path;
  const int status = statusOfChild([] {
    std::signal(SIGSEGV, [](int) { ::_exit(::access(path.c_str(), F_OK) == 0 ? 7 : 1); });
    logLines(path, 1000);
    *static_cast<volatile char*>(nullptr) = 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  expectLines(m_path, 1000);
}

// Several threads crash at the same time.
TEST_F(LastWords, OfThreadsThatCrashTogetherAreInTheFile) {
  const int status = statusOfChild([&] {
    logLines(m_path, 1000);
    std::jthread others[] = {std::jthread([] { std::abort(); }), std::jthread([] { ::raise(SIGSEGV); })};
    std::abort();
  });
  EXPECT_NE(status, 0);
  expectLines(m_path, 1000);
}

}  // namespace
}  // namespace sylar
