#include "sylar/app/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace sylar {
namespace {

void send(int signal) { ASSERT_EQ(::kill(::getpid(), signal), 0); }

TEST(Signals, TheEndComesBeforeAReload) {
  blockSignals();
  for (const int end : {SIGTERM, SIGINT}) {
    send(SIGHUP);
    send(end);
    EXPECT_EQ(awaitSignal(), end);
  }
  send(SIGHUP);
  EXPECT_EQ(awaitSignal(), SIGHUP);
}

// FM-32: the second of two that came together does not end the process when they are let through.
TEST(Signals, WhatCameTogetherIsOneEnd) {
  blockSignals();
  send(SIGTERM);
  send(SIGINT);
  EXPECT_EQ(awaitSignal(), SIGINT) << "the lowest number";
  releaseEndSignals();
  std::promise<void> never;
  blockSignals();
  send(SIGINT);
  send(SIGTERM);
  EXPECT_FALSE(endsBeforeASignal(never.get_future()));
  releaseEndSignals();
}

}  // namespace
}  // namespace sylar
