// libc and the C++ runtime keep some state for each thread, and some for all. Two fibers that take turns at every wait see the same
// of each other as two threads that take the same turns.
#include <cxxabi.h>
#include <dlfcn.h>
#include <iconv.h>
#include <langinfo.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/blocking_pool.h"
#include "sylar/threads_are_fibers.h"
#include "tests/hook/support.h"
#include "tests/support/beside_program.h"

namespace sylar::test {
namespace {

using Words = std::vector<std::string>;

/// What one of the two does. It notes what it sees, and passes the turn to the other.
class Actor {
 public:
  Actor(int its_number, int own, int others) : number(its_number), m_own(own), m_others(others) {}
  /// Lets the other one go on, and waits until that passes the turn or is over.
  void pass() {
    EXPECT_EQ(::write(m_others, "", 1), 1);
    wait();
  }
  void wait() const {
    char turn = 0;
    (void)::read(m_own, &turn, 1);
  }
  /// From here on the other one need not wait.
  void end() const { ::close(m_others); }
  template <class Value>
  void note(const Value& value) {
    if constexpr (std::is_convertible_v<Value, std::string>) {
      words.push_back(value);
    } else {
      words.push_back(std::to_string(value));
    }
  }

  const int number;
  Words words;

 private:
  const int m_own, m_others;
};

using Part = std::function<void(Actor&)>;

/// Runs the part by two who take turns, which `start` begins and `join` awaits, and returns what they have seen.
template <class Start, class Join>
std::array<Words, 2> inTurns(const Part& part, Start start, Join join) {
  int first[2], second[2];
  EXPECT_EQ(::pipe(first), 0);
  EXPECT_EQ(::pipe(second), 0);
  Actor one(1, first[0], second[1]), two(2, second[0], first[1]);
  start([&] {
    part(one);
    one.end();
  });
  start([&] {
    two.wait();
    part(two);
    two.end();
  });
  join();
  ::close(first[0]);
  ::close(second[0]);
  return {one.words, two.words};
}

class AsThreads : public OverWorkers {
 protected:
  void SetUp() override {
    if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  }
  void TearDown() override { BlockingPool::process().endAll(); }

  /// Expects of fibers what threads see, and that this is something.
  void compare(const Part& part) {
    std::vector<std::thread> threads;
    const auto of_threads = inTurns(
        part, [&](auto body) { threads.emplace_back(body); },
        [&] {
          for (auto& thread : threads) thread.join();
        });
    IOManager iom({.threads = workers(), .use_caller = false, .name = "own", .identity = FiberIdentity::kOwn});
    const auto of_fibers = inTurns(
        part, [&](auto body) { iom.schedule(body); }, [&] { iom.stop(); });
    EXPECT_EQ(of_fibers[0], of_threads[0]);
    EXPECT_EQ(of_fibers[1], of_threads[1]);
    EXPECT_FALSE(of_threads[0].empty());
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, AsThreads, testing::Values(1, 2));

TEST_P(AsThreads, TheSignalMask) {
  compare([](Actor& me) {
    const int signal = me.number == 1 ? SIGUSR1 : SIGUSR2;
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    for (int i = 0; i < 3; ++i) {
      me.pass();
      ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
      me.note(::sigismember(&set, SIGUSR1));
      me.note(::sigismember(&set, SIGUSR2));
    }
    ::sigemptyset(&set);
    ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  });
}

TEST_P(AsThreads, TheLocale) {
  compare([](Actor& me) {
    const locale_t mine = ::newlocale(LC_ALL_MASK, me.number == 1 ? "C.UTF-8" : "C", nullptr);
    ::uselocale(mine);
    for (int i = 0; i < 3; ++i) {
      me.pass();
      me.note(::nl_langinfo(CODESET));
      wchar_t wide = 0;
      me.note(static_cast<int>(std::mbrtowc(&wide, "\xc3\xa4", 2, nullptr)));
    }
    ::uselocale(LC_GLOBAL_LOCALE);
    ::freelocale(mine);
  });
}

TEST_P(AsThreads, ErrnoAndItsKin) {
  compare([](Actor& me) {
    errno = me.number;
    h_errno = 10 * me.number;
    me.pass();
    me.note(errno);
    me.note(h_errno);
    (void)::dlopen(me.number == 1 ? "/no/such/first" : "/no/such/second", RTLD_NOW);
    me.pass();
    const char* const told = ::dlerror();
    me.note(told != nullptr ? told : "nothing");
    const char* const text = ::strerror(1000 + me.number);  // in a buffer of the thread
    me.pass();
    me.note(text);
  });
}

// Of the C++ runtime's __cxa_get_globals.
TEST_P(AsThreads, ExceptionsInFlightAndCaught) {
  struct Noting {
    Actor& me;
    ~Noting() {
      me.pass();
      me.note(std::uncaught_exceptions());
    }
  };
  compare([](Actor& me) {
    const void* const globals = abi::__cxa_get_globals();
    me.note(std::uncaught_exceptions());
    for (int i = 0; i < 2; ++i) {
      try {
        const Noting in_flight{me};
        throw me.number * 100 + i;
      } catch (int caught) {
        me.pass();
        me.note(caught);
        try {
          throw;
        } catch (int again) {
          me.pass();
          me.note(again);
        }
        me.note(std::current_exception() != nullptr);
      }
      me.note(std::current_exception() == nullptr);
      me.pass();
    }
    me.note(globals == abi::__cxa_get_globals());
  });
}

// All threads share these.
TEST_P(AsThreads, WhatLibcKeepsForAll) {
  compare([](Actor& me) {
    std::string text = me.number == 1 ? "a b c" : "x y z";
    const char* token = std::strtok(text.data(), " ");
    me.pass();
    for (; token != nullptr; token = std::strtok(nullptr, " ")) {
      me.note(token);
      me.pass();
    }
    tm date{};
    date.tm_year = 70 + me.number;
    date.tm_mday = 1;
    const char* const shown = std::asctime(&date);
    me.pass();
    me.note(shown);
    const time_t day = me.number * 86'400;
    const tm* const split = std::gmtime(&day);
    me.pass();
    me.note(split->tm_mday);
    std::srand(static_cast<unsigned>(me.number));
    me.pass();
    me.note(std::rand());
    me.pass();
    me.note(std::rand());
  });
}

TEST_P(AsThreads, TheResolversState) {
  compare([](Actor& me) {
    ::res_init();
    _res.retry = me.number + 5;
    for (int i = 0; i < 3; ++i) {
      me.pass();
      me.note(static_cast<int>(_res.retry));
    }
  });
}

TEST_P(AsThreads, AConversionWithAState) {
  compare([](Actor& me) {
    const iconv_t to = ::iconv_open("ISO-2022-JP", "UTF-8");
    ASSERT_NE(to, reinterpret_cast<iconv_t>(-1));
    std::string text = me.number == 1 ? "\xe6\x97\xa5"
                                        "a"
                                      : "b\xe6\x9c\xac";
    char out[32] = {};
    char* at = out;
    size_t room = sizeof out;
    for (size_t i = 0; i < text.size();) {
      size_t left = std::min<size_t>(text.size() - i, static_cast<unsigned char>(text[i]) >= 0x80 ? 3 : 1);
      char* in = text.data() + i;
      i += left;
      me.note(static_cast<int>(::iconv(to, &in, &left, &at, &room)));
      me.pass();
    }
    (void)::iconv(to, nullptr, nullptr, &at, &room);
    me.note(std::string(out, at));
    ::iconv_close(to);
  });
}

// The library is loaded while the threads are there, and gone before the next are asked.
TEST_P(AsThreads, TheVariablesOfALibraryThatIsLoadedLater) {
  compare([](Actor& me) {
    const auto load = [] { return ::dlopen(besideProgram(SYLAR_PLUGIN).c_str(), RTLD_NOW | RTLD_LOCAL); };
    me.pass();
    for (int round = 0; round < 3; ++round) {
      void* const plugin = load();
      ASSERT_NE(plugin, nullptr) << ::dlerror();
      const auto add = reinterpret_cast<int (*)(int)>(::dlsym(plugin, "add"));
      ASSERT_NE(add, nullptr);
      for (int i = 0; i < 3; ++i) {
        me.note(add(me.number * 10 + i));
        me.pass();
      }
      EXPECT_EQ(::dlclose(plugin), 0);
      me.pass();
    }
  });
}

TEST_P(AsThreads, TheNameAndTheStateOfCancels) {
  compare([](Actor& me) {
    ::pthread_setname_np(::pthread_self(), me.number == 1 ? "first" : "second");
    int before = 0;
    ::pthread_setcancelstate(me.number == 1 ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE, &before);
    me.pass();
    char name[16];
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    me.note(name);
    ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    me.note(before);
  });
}

}  // namespace
}  // namespace sylar::test
