// A process that is stopped for a while, as by a debugger, a frozen container or a paused machine.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "tests/integration/child.h"
#include "tests/support/beside_program.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;

// FM-27: the clock jumps by five seconds: what came due meanwhile fires once, nothing early; recurring timers go on after one
// run, whether with Repeat::kDelay or kSkip. stopped_program.cc counts.
TEST(Stopped, WhatWasDueMeanwhileFiresOnceAndRecurringTimersDoNotCatchUp) {
  Child program({besideProgram(SYLAR_STOPPED_PROGRAM)});
  ASSERT_EQ(program.line(), "ready");
  program.signal(SIGSTOP);
  std::this_thread::sleep_for(5s);
  program.signal(SIGCONT);
  EXPECT_EQ(program.line(), "woken");
  EXPECT_EQ(program.line(), "right");
  EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace sylar::test
