// SignalWait: the signals are blocked from its beginning to its end, and each is waited for once.
#include "sylar/signal_wait.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

namespace sylar {
namespace {

bool isBlocked(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

TEST(SignalWait, ReturnsASignalThatCameBefore) {
  SignalWait end;
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(end.wait(), SIGTERM);
}

TEST(SignalWait, ReturnsASignalThatAnotherThreadSends) {
  SignalWait end({SIGUSR1, SIGUSR2});
  std::thread sender([] { ::kill(::getpid(), SIGUSR2); });
  EXPECT_EQ(end.wait(), SIGUSR2);
  sender.join();
}

TEST(SignalWait, BlocksItsSignalsOnThreadsThatAreMadeLaterAndNoOthers) {
  SignalWait end;
  std::thread([] {
    EXPECT_TRUE(isBlocked(SIGINT));
    EXPECT_TRUE(isBlocked(SIGTERM));
    EXPECT_FALSE(isBlocked(SIGUSR1));
  }).join();
}

TEST(SignalWait, RestoresTheMask) {
  { SignalWait end({SIGUSR1}); }
  EXPECT_FALSE(isBlocked(SIGUSR1));
  SignalWait outer({SIGUSR1});
  { SignalWait inner({SIGUSR1, SIGUSR2}); }
  EXPECT_TRUE(isBlocked(SIGUSR1));
  EXPECT_FALSE(isBlocked(SIGUSR2));
}

TEST(SignalWait, RefusesWhatIsNoSignal) { EXPECT_THROW(SignalWait({SIGTERM, 4711}), std::invalid_argument); }

}  // namespace
}  // namespace sylar
