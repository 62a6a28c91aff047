// Hooked against raw: a receive that has something already when the connection is reset.
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

void resetHalfWay(Run& run, int flags, int mark) {
  struct Kind {
    Ends (*make)(const Calls& creators);
  };
  for (const Kind& kind : {Kind{makeTcp}, Kind{[](const Calls& creators) { return makeUnix(creators, SOCK_STREAM); }}}) {
    for (const bool unread : {false, true}) {  // of AF_UNIX: it is a reset only if there is something unread
      const Ends ends = run.keep(kind.make(run.make));
      if (mark > 1) {
        EXPECT_EQ(run.call.setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark), 0);
      }
      if (unread) {
        EXPECT_EQ(libcCalls().write(ends[0], "u", 1), 1);
      }
      EXPECT_EQ(libcCalls().write(ends[1], "abcde", 5), 5);
      run.whileItWaits([=](const Calls& libc) {
        resetOnClose(ends[1]);
        libc.dup2(STDERR_FILENO, ends[1]);
      });
      char buffer[100];
      run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, flags));
      run.join();
      run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, flags));
      run.got("recv", run.call.recv(ends[0], buffer, sizeof buffer, flags));
    }
  }
}

void resetOfAll(Run& run) { resetHalfWay(run, MSG_WAITALL, 1); }
void resetOfAllPeeked(Run& run) { resetHalfWay(run, MSG_WAITALL | MSG_PEEK, 1); }
void resetBelowTheMark(Run& run) { resetHalfWay(run, 0, 50); }

std::vector<Case> cases() {
  return {
      {"All", resetOfAll},
      {"AllPeeked", resetOfAllPeeked},
      {"BelowTheMark", resetBelowTheMark},
  };
}

class ResetTest : public SameAsLibc {};

// HA-5
TEST_P(ResetTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, ResetTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
