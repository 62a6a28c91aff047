// RG-05: each allocation, mapping, registration, descriptor and thread in turn is the one that cannot be had, while fibers wait
// for descriptors, timers and helper threads. Whoever learns of an error closes his end, as servers do, and so nobody waits for
// ever.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "sylar/fiber/fiber_control.h"
#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "tests/faults/enumerate.h"

namespace sylar::faults {
namespace {

/// A descriptor that is closed with its last user.
class Owned {
 public:
  Owned() = default;
  explicit Owned(int fd) : m_fd(fd) {}
  ~Owned() { close(); }
  Owned(Owned&& other) noexcept : m_fd(other.m_fd.exchange(-1)) {}
  Owned& operator=(Owned&& other) noexcept {
    close();
    m_fd = other.m_fd.exchange(-1);
    return *this;
  }

  operator int() const { return m_fd; }  // NOLINT: as a descriptor
  void close() {
    if (const int fd = m_fd.exchange(-1); fd >= 0) ::close(fd);
  }

 private:
  std::atomic<int> m_fd{-1};
};

/// Two ends; who lets go of one closes it.
using Ends = std::array<std::shared_ptr<Owned>, 2>;

Ends socketPair() {
  const Exempt exempt;
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {std::make_shared<Owned>(fds[0]), std::make_shared<Owned>(fds[1])};
}

bool waitsOrIsOver(const Fiber& fiber) { return stateOf(fiber) == FiberState::kParked || isOver(stateOf(fiber)); }

/// In turns with the other end: `rounds` bytes there and back.
void pingPong(Trial& trial, Owned& end, bool begins, int rounds) {
  char byte = 'a';
  for (int i = 0; i < rounds; ++i) {
    if (begins && trial.checked(::write(end, &byte, 1), {EPIPE, ECONNRESET}) != 1) break;
    if (trial.checked(::read(end, &byte, 1), {ECONNRESET}) != 1) break;
    if (!begins && trial.checked(::write(end, &byte, 1), {EPIPE, ECONNRESET}) != 1) break;
  }
  end.close();
}

TEST(IoFaults, Sleep) {  // FM-04: without memory for a timeout the thread sleeps; nobody sleeps too short.
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(2, false, "sleep");
      for (int i = 0; i < 3; ++i) {
        trial.accepts([&] {
          return iom.trySchedule(trial.work([&trial] {
            const auto begin = std::chrono::steady_clock::now();
            trial.checked(::usleep(300));
            const timespec duration{0, 200'000};
            trial.checked(::nanosleep(&duration, nullptr));
            EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(500));
          }));
        });
      }
    });
  });
}

TEST(IoFaults, ReadAndWrite) {  // FM-04, FM-12
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      Ends ends = socketPair();
      IOManager iom(1, false, "read");
      for (const bool begins : {true, false}) {
        trial.accepts([&] {
          return iom.trySchedule(trial.work([&trial, begins, end = std::exchange(ends[begins], nullptr)] {  //
            pingPong(trial, *end, begins, 3);
          }));
        });
      }
    });
  });
}

// FM-12: what epoll does not take, a file, is read as without it: the call blocks the thread, and gives what libc's gives.
TEST(IoFaults, WhatCannotBeWaitedForBlocksTheThread) {
  const Fault faults[] = {{Kind::kEpollControl, EPERM}};
  enumerate(faults, [](Trial& trial) {
    const auto ends = socketPair();
    std::optional<std::thread> peer;
    {
      const Exempt exempt;
      peer.emplace([&] { pingPong(trial, *ends[0], true, 3); });
    }
    bool all = false;
    trial.passes([&] {
      IOManager iom(1, false, "file");
      trial.accepts([&] {
        return iom.trySchedule(trial.work([&] {
          pingPong(trial, *ends[1], false, 3);
          all = trial.complete();
        }));
      });
      iom.stop();
      EXPECT_TRUE(all);
    });
    ends[1]->close();
    peer->join();
  });
}

TEST(IoFaults, ReadWithATimeout) {  // FM-04
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      const auto ends = socketPair();
      const timeval timeout{0, 1000};
      EXPECT_EQ(::setsockopt(*ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
      IOManager iom(1, false, "timeout");
      for (int i = 0; i < 2; ++i) {
        trial.accepts([&] {
          return iom.trySchedule(trial.work([&trial, &end = *ends[0]] {
            char byte;
            EXPECT_EQ(::read(end, &byte, 1), -1);
            if (errno != EAGAIN) trial.checked(-1);
          }));
        });
      }
    });
  });
}

TEST(IoFaults, CloseAgainstAWaiter) {  // FM-04, FM-12
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      const auto ends = socketPair();
      IOManager iom(2, false, "close");
      const auto reader = std::make_shared<Fiber>(trial.work([&] {
        char byte;
        EXPECT_EQ(::read(*ends[0], &byte, 1), -1);
        if (errno != EBADF) trial.checked(-1);
      }));
      const auto closer = std::make_shared<Fiber>(trial.work([&] {
        while (!waitsOrIsOver(*reader)) Fiber::YieldToReady();
        ends[0]->close();
      }));
      if (!trial.accepts([&] { return iom.trySchedule(reader); })) return;
      if (trial.accepts([&] { return iom.trySchedule(closer); })) trial.join(*closer);
      while (!waitsOrIsOver(*reader)) std::this_thread::yield();
      ends[0]->close();
      trial.join(*reader);
    });
  });
}

TEST(IoFaults, Events) {  // FM-04, FM-12. Cause: a callback's fiber was made where its event came, and there was nobody to tell.
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      const auto ends = socketPair();
      const auto others = socketPair();
      IOManager iom(2, false, "events");
      const auto add = [&](int fd, IOManager::Event event) {
        trial.accepts([&] { return trial.checked(iom.addEvent(fd, event, trial.work())) == 0; });
      };
      add(*ends[0], IOManager::READ);
      add(*ends[0], IOManager::READ);
      add(*ends[0], IOManager::WRITE);
      add(*others[0], IOManager::READ);
      if (trial.passes([&] { return trial.checked(iom.addEvent(*others[1], IOManager::READ, [] { FAIL(); })) == 0; })) {
        EXPECT_TRUE(iom.delEvent(*others[1], IOManager::READ));
      }
      trial.accepts([&] {
        return iom.trySchedule(trial.work([&] {
          if (trial.checked(iom.addEvent(*ends[0], IOManager::READ)) == 0) Fiber::YieldToHold();
        }));
      });
      EXPECT_EQ(::write(*ends[1], "x", 1), 1);
      iom.cancelEvent(*others[0], IOManager::READ);
      iom.stop();
    });
  });
}

TEST(IoFaults, CloseAgainstACallback) {  // FM-04
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      const auto ends = socketPair();
      IOManager iom(2, false, "closed");
      for (int i = 0; i < 2; ++i) {
        trial.accepts([&] { return trial.checked(iom.addEvent(*ends[0], IOManager::READ, trial.work())) == 0; });
      }
      ends[0]->close();
    });
  });
}

TEST(IoFaults, Timers) {  // FM-04: those that were armed run, or are cancelled.
  enumerate(passingFaults(), [](Trial& trial) {
    trial.passes([&] {
      trial.triesAgain();
      const auto condition = std::make_shared<int>(0);
      std::atomic<int> rounds{0};
      IOManager iom(2, false, "timers");
      for (int i = 0; i < 3; ++i) trial.accepts([&] { return iom.addTimer(1, trial.work()) != nullptr; });
      trial.accepts([&] { return iom.addConditionTimer(1, trial.work(), condition) != nullptr; });
      trial.passes([&] {
        return iom.addConditionTimer(
                   1, [] { FAIL(); }, std::weak_ptr<int>()) != nullptr;
      });
      trial.passes([&] { EXPECT_TRUE(iom.addTimer(60'000, [] { FAIL(); })->cancel()); });
      Timer::ptr recurring;
      trial.passes([&] {
        recurring = iom.addTimer(
            1, [&rounds] { ++rounds; }, true);
      });
      while (recurring != nullptr && rounds < 3) std::this_thread::yield();
      if (recurring != nullptr) recurring->cancel();
    });
  });
}

struct Listener {
  explicit Listener(bool shared) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const int on = 1;
    for (const Owned* one : {&held, &fd}) {
      EXPECT_EQ(::setsockopt(*one, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
      EXPECT_EQ(::bind(*one, reinterpret_cast<const sockaddr*>(&address), size), 0);
      EXPECT_EQ(::getsockname(*one, reinterpret_cast<sockaddr*>(&address), &size), 0);
    }
    EXPECT_EQ(::listen(fd, 8), 0);
    if (shared) copy = Owned(::dup(fd));
  }
  void close() {
    fd.close();
    copy.close();
  }

  Owned held{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};  // keeps the port: who calls after the end is refused
  Owned fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Owned copy;
  sockaddr_in address{};
};

/// Echoes a byte on each connection until the listener is closed; after several errors it closes the listener itself.
void serve(Trial& trial, Listener& listener) {
  for (int errors = 0; errors < 8;) {
    Owned connection(::accept(listener.fd, nullptr, nullptr));
    if (connection >= 0) {
      pingPong(trial, connection, false, 1);
    } else if (errno == EBADF) {
      return;
    } else {
      trial.checked(-1);
      ++errors;
    }
  }
  listener.close();
}

void callOnce(Trial& trial, const Listener& listener) {
  Owned client(static_cast<int>(trial.checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))));
  const auto* const address = reinterpret_cast<const sockaddr*>(&listener.address);
  if (trial.checked(::connect(client, address, sizeof listener.address), {ECONNREFUSED, ECONNRESET}) < 0) return;
  char byte = 'a';
  if (trial.checked(::send(client, &byte, 1, MSG_NOSIGNAL), {EPIPE, ECONNRESET}) != 1) return;
  if (trial.checked(::read(client, &byte, 1), {ECONNRESET}) != 1) trial.passes([] { return false; });
}

void echoOverLoopback(Trial& trial, Listener& listener) {
  IOManager iom(2, false, "echo");
  const auto server = std::make_shared<Fiber>(trial.work([&] { serve(trial, listener); }));
  const bool serves = trial.accepts([&] { return iom.trySchedule(server); });
  struct Closing {
    ~Closing() { listener.close(); }
    Listener& listener;
  } closing{listener};
  for (int i = 0; i < 2; ++i) {
    const auto client = std::make_shared<Fiber>(trial.work([&] { callOnce(trial, listener); }));
    if (!trial.accepts([&] { return iom.trySchedule(client); })) continue;
    while (!isOver(stateOf(*client))) {
      if (!serves || isOver(stateOf(*server))) listener.close();
      std::this_thread::yield();
    }
    trial.join(*client);
  }
  listener.close();
  if (serves) trial.join(*server);
}

TEST(IoFaults, AcceptAndConnect) {  // FM-04, FM-12
  enumerate(usualFaults(), [](Trial& trial) {
    Listener listener(false);
    trial.passes([&] { echoOverLoopback(trial, listener); });
  });
}

// FM-04, FM-35: the accept of a listener that others may know runs on a helper thread.
TEST(IoFaults, AcceptOnASharedListener) {
  enumerate(usualFaults(), [](Trial& trial) {
    Listener listener(true);
    trial.passes([&] { echoOverLoopback(trial, listener); });
    BlockingPool::process().endAll();
  });
}

TEST(IoFaults,
     Poll) {  // FM-04, FM-12. Cause: without memory for a registration the thread was blocked, and with it who would write.
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      IOManager iom(1, false, "poll");
      for (const size_t count : {2, 6}) {  // few have room in the call, more do not
        const std::array pairs = {socketPair(), socketPair(), socketPair(), socketPair(), socketPair(), socketPair()};
        const Ends& last = pairs[count - 1];
        const auto poller = std::make_shared<Fiber>(trial.work([&] {
          std::array<pollfd, 6> polled{};
          for (size_t i = 0; i < count; ++i) polled[i] = {*pairs[i][0], POLLIN, 0};
          if (trial.checked(::poll(polled.data(), count, -1)) < 0) return;
          EXPECT_NE(polled[count - 1].revents & POLLIN, 0);
        }));
        const auto writer = std::make_shared<Fiber>(trial.work([&] {
          while (!waitsOrIsOver(*poller)) Fiber::YieldToReady();
          EXPECT_EQ(::write(*last[1], "x", 1), 1);
        }));
        const bool polls = trial.accepts([&] { return iom.trySchedule(poller); });
        if (trial.accepts([&] { return iom.trySchedule(writer); })) trial.join(*writer);
        last[1]->close();
        if (polls) trial.join(*poller);
      }
    });
  });
}

// FM-04. Cause: without memory for its wait the open failed with ENOLCK, which is the error of a file's lock.
TEST(IoFaults, OpenOfAFifo) {
  const std::string path = "/tmp/sylar-faults-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  enumerate(usualFaults(), [&path](Trial& trial) {
    trial.passes([&] {
      IOManager iom(1, false, "fifo");
      const auto writer = std::make_shared<Fiber>(trial.work([&] {
        const int fd = ::open(path.c_str(), O_WRONLY);
        if (trial.checked(fd) >= 0) ::close(fd);
      }));
      if (!trial.accepts([&] { return iom.trySchedule(writer); })) return;
      while (!waitsOrIsOver(*writer)) std::this_thread::yield();
      Owned reader;
      {
        const Exempt exempt;
        reader = Owned(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
      }
      trial.join(*writer);
    });
  });
  ::unlink(path.c_str());
}

TEST(IoFaults, HelperThreads) {  // FM-04, FM-35: a refused function is not run, an accepted one is, once.
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      BlockingPool pool({.max_threads = 2, .max_queued = 4});
      IOManager iom(2, false, "helpers");
      for (int i = 0; i < 4; ++i) {
        trial.accepts([&] {
          return iom.trySchedule(trial.work([&] {
            int runs = 0;
            const int result = pool.run([&runs] { ++runs; });
            EXPECT_EQ(runs, result == 0 ? 1 : 0);
            if (result == 0) return;
            EXPECT_EQ(result, -EAGAIN);
            trial.passes([] { return false; });
          }));
        });
      }
      iom.stop();
    });
  });
}

TEST(IoFaults, StopWithADeadlineAgainstThoseThatWait) {  // FM-04, FM-12
  enumerate(usualFaults(), [](Trial& trial) {
    trial.passes([&] {
      const auto ends = socketPair();
      IOManager iom(2, false, "stop");
      for (int i = 0; i < 2; ++i) {
        trial.accepts([&] {
          return iom.trySchedule(trial.work([&] {
            char byte;
            EXPECT_EQ(::read(*ends[0], &byte, 1), -1);
            if (errno != ECANCELED) trial.checked(-1);
          }));
        });
        trial.accepts([&] {
          return iom.trySchedule(trial.work([&] {
            pollfd one{*ends[0], POLLIN, 0};
            EXPECT_EQ(::poll(&one, 1, 60'000), -1);
            if (errno != ECANCELED) trial.checked(-1);
          }));
        });
        trial.passes([&] { return trial.checked(iom.addEvent(*ends[0], IOManager::READ, [] { FAIL(); })) == 0; });
        trial.passes([&] { return iom.addTimer(60'000, [] { FAIL(); }) != nullptr; });
      }
      trial.passes([&] { return iom.stop(Deadline::after(std::chrono::seconds(20), steadyClock())).clean; });
    });
  });
}

}  // namespace
}  // namespace sylar::faults
