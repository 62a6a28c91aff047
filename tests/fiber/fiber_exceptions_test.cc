// The state of exceptions that C++ keeps for each thread belongs to the fiber.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/fiber/make.h"
#include "tests/support/fibers.h"

namespace sylar {
namespace {

using test::make;

/// Throws `mine`, suspends in the handler, rethrows, and returns what arrives outside.
template <class Suspend>
std::string rethrownAfter(const std::string& mine, Suspend suspend) {
  try {
    try {
      throw std::runtime_error(mine);
    } catch (const std::runtime_error&) {
      suspend();
      throw;
    }
  } catch (const std::exception& e) {
    return e.what();
  }
}

// RT-3.3, CD-F3
TEST(FiberExceptions, InterleavedHandlersRethrowTheirOwn) {
  std::string first, second;
  const auto a = make([&] { first = rethrownAfter("a", [] { Fiber::YieldToHold(); }); });
  const auto b = make([&] { second = rethrownAfter("b", [] { Fiber::YieldToHold(); }); });
  a->resume();
  b->resume();
  a->resume();  // the handlers end in the order in which they began, not in the reverse
  b->resume();
  EXPECT_EQ(first, "a");
  EXPECT_EQ(second, "b");
}

// RT-3.3
TEST(FiberExceptions, NestedHandlersOfManyFibersUnwindInAnyOrder) {
  constexpr int kFibers = 20;
  std::vector<std::string> seen(kFibers);
  std::vector<Fiber::ptr> fibers;
  for (int i = 0; i < kFibers; ++i) {
    fibers.push_back(make([&, i] {
      const std::string name = std::to_string(i);
      seen[static_cast<size_t>(i)] = rethrownAfter(name + " outer", [&] {
        seen[static_cast<size_t>(i)] = rethrownAfter(name + " inner", [] { Fiber::YieldToHold(); });
        EXPECT_EQ(seen[static_cast<size_t>(i)], name + " inner");
        Fiber::YieldToHold();
      });
    }));
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kFibers; ++i) fibers[static_cast<size_t>((i * 7 + round) % kFibers)]->resume();
  }
  for (int i = 0; i < kFibers; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], std::to_string(i) + " outer");
}

/// Suspends while the stack is unwound.
struct YieldsInItsDestructor {
  ~YieldsInItsDestructor() {
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    Fiber::YieldToHold();
    EXPECT_EQ(std::uncaught_exceptions(), 1);
  }
};

// RT-3.3, CD-F3
TEST(FiberExceptions, UnwindingOfOneFiberIsNotSeenByAnother) {
  bool caught = false;
  const auto unwinding = make([&] {
    try {
      const YieldsInItsDestructor yields;
      throw 1;
    } catch (int) {
      caught = true;
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
  unwinding->resume();
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  const auto other = make([] {
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_EQ(rethrownAfter("other", [] { EXPECT_EQ(std::uncaught_exceptions(), 0); }), "other");
  });
  other->resume();
  EXPECT_FALSE(caught);
  unwinding->resume();
  EXPECT_TRUE(caught);
}

// A fiber that is started in a handler, or while a stack is unwound, begins with nothing of that.
TEST(FiberExceptions, NewFiberBeginsWithNone) {
  const auto look = [] {
    make([] {
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      EXPECT_EQ(std::current_exception(), nullptr);
    })->resume();
  };
  struct LooksInItsDestructor {
    ~LooksInItsDestructor() { run(); }
    const decltype(look)& run;
  };
  try {
    const LooksInItsDestructor looks{look};
    throw 1;
  } catch (int) {
    look();
    EXPECT_NE(std::current_exception(), nullptr);
  }
}

// An exception that is on its way out of a fiber does not disturb the one that its resumer handles.
TEST(FiberExceptions, EndByAnExceptionInsideAHandlerOfTheResumer) {
  EXPECT_EQ(rethrownAfter("mine",
                          [] {
                            const auto fiber = make([] { throw std::runtime_error("its own"); });
                            fiber->resume();
                            EXPECT_THROW(fiber->join(), std::runtime_error);
                          }),
            "mine");
}

// A held exception belongs to nobody's stack: another fiber may rethrow it after its fiber has gone.
TEST(FiberExceptions, ExceptionPointerOutlivesItsFiber) {
  std::exception_ptr kept;
  make([&] {
    try {
      throw std::runtime_error("kept");
    } catch (...) {
      kept = std::current_exception();
    }
  })->resume();
  const auto other = make([&] { std::rethrow_exception(kept); });
  other->resume();
  EXPECT_THROW(other->join(), std::runtime_error);
}

// ---- On workers, with hooked calls. ------------------------------------------------------------------------------------------

class FiberExceptionsOver : public test::OverWorkers {};
INSTANTIATE_TEST_SUITE_P(Workers, FiberExceptionsOver, test::kWorkerCounts);

/// Waits in a blocking read for a byte that `other` sends.
void pass(int fd) {
  char byte = 'x';
  EXPECT_EQ(write(fd, &byte, 1), 1);
  EXPECT_EQ(read(fd, &byte, 1), 1);
}

// CD-F3: on 4 workers, 200 fibers, 20 waits each inside a handler, and a rethrow.
TEST_P(FiberExceptionsOver, WaitsInsideHandlersKeepTheException) {
  constexpr int kFibers = 200;
  std::atomic<int> right{0};
  {
    IOManager iom(workers(), false, "catch");
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule([&, i] {
        const std::string mine = std::to_string(i);
        const std::string seen = rethrownAfter(mine, [&] {
          for (int turn = 0; turn < 20; ++turn) {
            turn % 2 == 0 ? Fiber::YieldToReady() : void(usleep(0));
            EXPECT_EQ(std::uncaught_exceptions(), 0);
          }
        });
        right += seen == mine;
      });
    }
  }
  EXPECT_EQ(right, kFibers);
}

// CD-F3: "terminate called without an active exception", 6 of 6, in the predecessor.
TEST_P(FiberExceptionsOver, BlockingReadInsideAHandlerKeepsTheException) {
  constexpr int kPairs = 50;
  std::atomic<int> right{0};
  {
    IOManager iom(workers(), false, "catch");
    for (int i = 0; i < kPairs; ++i) {
      iom.schedule([&, i] {
        std::array<int, 2> fds;
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
        const auto end = [&right](int fd, const std::string& mine) {
          const std::string seen = rethrownAfter(mine, [fd] {
            for (int turn = 0; turn < 20; ++turn) pass(fd);
          });
          right += seen == mine;
        };
        const auto other = make([&] { end(fds[1], "other " + std::to_string(i)); });
        Scheduler::GetThis()->schedule(other);
        end(fds[0], std::to_string(i));
        other->join();
        close(fds[0]);
        close(fds[1]);
      });
    }
  }
  EXPECT_EQ(right, 2 * kPairs);
}

// CD-F3
TEST_P(FiberExceptionsOver, WaitInADestructorDuringUnwinding) {
  constexpr int kFibers = 100;
  std::atomic<int> caught{0};
  struct WaitsInItsDestructor {
    ~WaitsInItsDestructor() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      usleep(0);
      Fiber::YieldToReady();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  {
    IOManager iom(workers(), false, "unwind");
    for (int i = 0; i < kFibers; ++i) {
      iom.schedule([&, i] {
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        try {
          const WaitsInItsDestructor waits;
          throw i;
        } catch (int value) {
          caught += value == i;
        }
        EXPECT_EQ(std::uncaught_exceptions(), 0);
      });
    }
  }
  EXPECT_EQ(caught, kFibers);
}

}  // namespace
}  // namespace sylar
