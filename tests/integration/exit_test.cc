// How a process ends that calls exit() in a fiber, with schedulers that are static objects. Each way is a process of its own, on
// one and on two workers. What it writes to stderr says which handlers ran.
#include <err.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include "sylar/http/http_server.h"
#include "sylar/iomanager.h"
#include "sylar/log.h"
#include "sylar/scheduler.h"
#include "sylar/socket.h"
#include "sylar/sync/wait_group.h"
#include "sylar/tcp_server.h"
#include "sylar/threads_are_fibers.h"

namespace sylar {
namespace {

void say(const char* text) { (void)!::write(2, text, std::strlen(text)); }

/// Says that it is destroyed, after it has waited and locked as the program's objects do.
struct Last {
  ~Last() {
    const std::lock_guard lock(mutex);
    ::usleep(1000);
    say("static object\n");
  }
  Mutex mutex;
};

/// Makes what must run at the end. What is made later is destroyed earlier.
void prepare() {
  ::alarm(60);
  static Last last;
  std::atexit([] { say("handler\n"); });
}
constexpr const char* kBothRan = "^handler\nstatic object\n$";

IOManager& staticManager(size_t workers) {
  static IOManager iom(workers, false, "static");
  return iom;
}

[[noreturn]] void waitForTheEnd() {
  for (;;) ::pause();
}

void inAFiber(size_t workers) {
  staticManager(workers).schedule([] { std::exit(7); });
  waitForTheEnd();
}

void whileMainStopsIt(size_t workers) {
  staticManager(workers).schedule([] { std::exit(7); });
  staticManager(workers).stop();
  std::_Exit(1);
}

void whileMainStopsItUntilADeadline(size_t workers) {
  std::atomic<bool> exits{false};
  staticManager(workers).schedule([&] {
    std::atexit([] { ::usleep(20'000); });
    exits = true;
    std::exit(7);
  });
  while (!exits) ::usleep(100);
  staticManager(workers).stop(Deadline::after(std::chrono::seconds(30)));
  std::_Exit(1);
}

void onTheCaller(size_t workers) {
  static IOManager iom(workers, true, "caller");
  iom.schedule([] { std::exit(7); });
  iom.stop();
  std::_Exit(1);
}

void inATimer(size_t workers) {
  staticManager(workers).addTimer(
      1, [] { std::exit(7); }, true);
  waitForTheEnd();
}

void inACallbackOfADescriptor(size_t workers) {
  static int fds[2];
  if (::pipe(fds) != 0) std::_Exit(1);
  staticManager(workers).addEvent(fds[0], IOManager::READ, [] { std::exit(7); });
  if (::write(fds[1], "x", 1) != 1) std::_Exit(1);
  waitForTheEnd();
}

void inAFiberThatIsResumedByHand(size_t workers) {
  staticManager(workers).schedule([] { std::make_shared<Fiber>([] { std::exit(7); })->resume(); });
  waitForTheEnd();
}

void byHandInMain(size_t workers) {
  staticManager(workers).schedule([] { ::sleep(1000); });
  std::make_shared<Fiber>([] { std::exit(7); })->resume();
}

void besideFibersThatWait(size_t workers) {
  static int fds[2];
  if (::pipe(fds) != 0) std::_Exit(1);
  static std::atomic<int> waiting{0};
  for (int i = 0; i < 100; ++i) {
    staticManager(workers).schedule([] {
      char byte;
      ++waiting;
      (void)!::read(fds[0], &byte, 1);
      say("a fiber went on\n");
    });
  }
  staticManager(workers).addTimer(
      1, [] {}, true);
  staticManager(workers).schedule([] {
    while (waiting < 100) ::usleep(1000);
    std::exit(7);
  });
  waitForTheEnd();
}

void withTwoSchedulers(size_t workers) {
  static IOManager other(workers, false, "other");
  other.schedule([] { ::sleep(1000); });
  other.addTimer(
      1, [] {}, true);
  inAFiber(workers);
}

void withTwoSchedulersTheOtherWayRound(size_t workers) {
  staticManager(workers).schedule([] { ::sleep(1000); });
  static IOManager other(workers, false, "other");
  other.schedule([] { std::exit(7); });
  waitForTheEnd();
}

/// The end of the other one has no fibers left, but is not over when its destructor comes.
void whileAFiberStopsAnotherOne(size_t workers) {
  static std::atomic<bool> winds_up{false}, is_destroyed{false}, is_over{false};
  struct Other : Scheduler {
    using Scheduler::Scheduler;
    ~Other() override {
      is_destroyed = true;
      stop();
      if (!is_over) say("destroyed too early\n");
    }
    void dropPending() override {
      winds_up = true;
      while (!is_destroyed) std::this_thread::yield();
      ::usleep(1000);
      is_over = true;
    }
  };
  static Other other(workers, false, "other");
  other.start();
  IOManager iom(2, false, "stopping");
  iom.schedule([] { other.stop(); });
  std::thread([&iom] {
    while (!winds_up) std::this_thread::yield();
    iom.schedule([] { std::exit(7); });
  }).detach();
  waitForTheEnd();
}

void besideAFiberThatComputes(size_t workers) {
  static std::atomic<bool> computes{false};
  static std::atomic<bool> never{false};
  static IOManager other(1, false, "other");
  other.schedule([] {
    computes = true;
    while (!never) continue;
  });
  while (!computes) ::usleep(100);
  inAFiber(workers);
}

void inTwoFibersAtOnce(size_t workers) {
  static std::atomic<size_t> there{0};
  static size_t all;
  all = workers;
  for (size_t i = 0; i < workers; ++i) {
    staticManager(workers).place([] {
      ++there;
      while (there < all) continue;
      std::exit(7);
    });
  }
  waitForTheEnd();
}

void inAThreadThatIsAFiber(size_t workers) {
  static ThreadsAreFibers threads_are_fibers;
  staticManager(workers).schedule([] { std::thread([] { std::exit(7); }).join(); });
  waitForTheEnd();
}

void byLibc(size_t workers) {
  staticManager(workers).schedule([] { ::errx(7, "libc calls exit"); });
  waitForTheEnd();
}

void afterMainHasLeft(size_t workers) {
  staticManager(workers).addTimer(50, [] { std::exit(7); });
  ::syscall(SYS_exit, 0);  // as pthread_exit, whose unwinding a death test takes for an exception
}

void whileMainReturns(size_t workers) {
  staticManager(workers).addTimer(50, [] { std::exit(7); });
  std::exit(1);  // main waits in the destructor
}

/// A handler that runs before the scheduler goes may wait for its fibers, also for those of the worker that it runs on.
void withAHandlerThatWaitsForAFiber(size_t workers) {
  staticManager(workers);
  std::atexit([] {
    WaitGroup group;
    group.add(1);
    staticManager(1).schedule([&] {
      ::usleep(1000);
      group.done();
    });
    group.wait();
  });
  inAFiber(workers);
}

/// A scheduler that a handler makes runs to its end, as elsewhere.
void withAHandlerThatHasAScheduler(size_t workers) {
  std::atexit([] {
    std::atomic<bool> ran{false};
    {
      IOManager own(1, false, "own");
      own.schedule([&] {
        ::usleep(1000);
        ran = true;
      });
    }
    if (!ran) say("no fiber ran\n");
  });
  inAFiber(workers);
}

void inAHandler(size_t workers) {
  staticManager(workers);
  std::atexit([] {
    staticManager(1).schedule([] { std::exit(7); });
    waitForTheEnd();
  });
  std::exit(1);
}

void inAHandlerOfTcp(size_t workers) {
  struct Server : TcpServer {
    using TcpServer::TcpServer;
    void handleClient(Socket::ptr) override { std::exit(7); }
  };
  IOManager& iom = staticManager(workers);
  static const auto server = std::make_shared<Server>(&iom, &iom, &iom);
  if (!server->bind(IPAddress::Create("127.0.0.1")) || !server->start()) std::_Exit(1);
  const auto client = Socket::CreateTCPSocket();
  client->connect(server->getSocks()[0]->getLocalAddress());
  waitForTheEnd();
}

void inAHandlerOfHttp(size_t workers) {
  IOManager& iom = staticManager(workers);
  static const auto server = std::make_shared<http::HttpServer>(true, &iom, &iom, &iom);
  server->getServletDispatch()->addServlet(
      "/", [](http::HttpRequest::ptr, http::HttpResponse::ptr, http::HttpSession::ptr) -> int { std::exit(7); });
  if (!server->bind(IPAddress::Create("127.0.0.1")) || !server->start()) std::_Exit(1);
  const auto client = Socket::CreateTCPSocket();
  client->connect(server->getSocks()[0]->getLocalAddress());
  client->send("GET / HTTP/1.1\r\nhost: h\r\n\r\n", 27);
  waitForTheEnd();
}

struct Way {
  const char* name;
  void (*run)(size_t workers);
  const char* stderr_pattern = kBothRan;
  friend std::ostream& operator<<(std::ostream& os, const Way& way) { return os << way.name; }
};

class ExitDeathTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// FM-33: the process ends with the code, all handlers run, and nothing waits forever.
TEST_P(ExitDeathTest, EndsTheProcessWithItsCode) {
  for (const size_t workers : {1, 2}) {
    const auto whole_process = [&] {
      prepare();
      GetParam().run(workers);
    };
    EXPECT_EXIT(whole_process(), testing::ExitedWithCode(7), GetParam().stderr_pattern);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ExitDeathTest,
    testing::Values(Way{"Fiber", &inAFiber}, Way{"WhileMainStops", &whileMainStopsIt},
                    Way{"WhileMainStopsUntilADeadline", &whileMainStopsItUntilADeadline}, Way{"Caller", &onTheCaller},
                    Way{"Timer", &inATimer}, Way{"Descriptor", &inACallbackOfADescriptor},
                    Way{"ByHand", &inAFiberThatIsResumedByHand}, Way{"ByHandInMain", &byHandInMain},
                    Way{"BesideWaiting", &besideFibersThatWait}, Way{"TwoSchedulers", &withTwoSchedulers},
                    Way{"TwoSchedulersReversed", &withTwoSchedulersTheOtherWayRound},
                    Way{"WhileAFiberStopsAnotherOne", &whileAFiberStopsAnotherOne},
                    Way{"BesideComputing", &besideAFiberThatComputes}, Way{"TwoAtOnce", &inTwoFibersAtOnce, ""},
                    Way{"ThreadThatIsAFiber", &inAThreadThatIsAFiber},
                    Way{"ByLibc", &byLibc, "libc calls exit\nhandler\nstatic object\n$"}, Way{"MainHasLeft", &afterMainHasLeft},
                    Way{"MainReturns", &whileMainReturns}, Way{"HandlerWaitsForAFiber", &withAHandlerThatWaitsForAFiber},
                    Way{"HandlerHasAScheduler", &withAHandlerThatHasAScheduler}, Way{"Handler", &inAHandler},
                    Way{"Tcp", &inAHandlerOfTcp}, Way{"Http", &inAHandlerOfHttp}),
    [](const auto& way) { return std::string(way.param.name); });

class OtherEndsDeathTest : public ExitDeathTest {};

// FM-33: the ends that run no static destructors do not meet the schedulers at all.
TEST_F(OtherEndsDeathTest, EndAsWithoutFibers) {
  for (const size_t workers : {1, 2}) {
    const auto in_a_fiber = [workers](void (*end)()) {
      prepare();
      std::at_quick_exit([] { say("quick\n"); });
      staticManager(workers).schedule(end);
      waitForTheEnd();
    };
    EXPECT_EXIT(in_a_fiber([] { std::quick_exit(7); }), testing::ExitedWithCode(7), "^quick\n$");
    EXPECT_EXIT(in_a_fiber([] { std::_Exit(7); }), testing::ExitedWithCode(7), "^$");
    EXPECT_EXIT(in_a_fiber([] { std::terminate(); }), testing::KilledBySignal(SIGABRT), "terminate");
  }
}

// FM-33: what was logged before is in the file.
TEST_F(OtherEndsDeathTest, ExitWritesTheLog) {
  const std::string path = testing::TempDir() + "exit_test.log";
  for (const size_t workers : {1, 2}) {
    std::remove(path.c_str());
    const auto logs = [&] {
      prepare();
      SYLAR_LOG_NAME("file")->addAppender(std::make_shared<FileLogAppender>(path));
      staticManager(workers).schedule([] {
        for (int i = 0; i < 1000; ++i) SYLAR_LOG_INFO(SYLAR_LOG_NAME("file")) << "line " << i;
        std::exit(7);
      });
      waitForTheEnd();
    };
    EXPECT_EXIT(logs(), testing::ExitedWithCode(7), kBothRan);
    std::ifstream file(path);
    std::string line, last;
    int lines = 0;
    for (; std::getline(file, line); ++lines) last = line;
    EXPECT_EQ(lines, 1000);
    EXPECT_NE(last.find("line 999"), std::string::npos) << last;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace sylar
