// What hand_off_trace_test.py watches under strace: two fibers on one worker that hand something to each other in turn, through
// each primitive that is named on the command line. Marks the hand-offs with a system call that nothing else makes.
#include <sys/syscall.h>

#include <chrono>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sylar/base/sys.h"
#include "sylar/iomanager.h"
#include "sylar/mutex.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/condition_variable.h"
#include "sylar/sync/select.h"

namespace sylar {
namespace {

constexpr int kWarmRounds = 100;  // until the queues and timers have their memory
constexpr int kRounds = 1000;

/// The parent's process id is asked for nowhere else.
void mark() { sys::call(SYS_getppid); }

/// What a fiber does again and again, and the other one in turn with it.
struct Rounds {
  std::function<void()> one;
  std::function<void()> other;
};

void repeat(const std::function<void()>& round, int times) {
  for (int i = 0; i < times; ++i) round();
}

void run(const Rounds& rounds) {
  const auto fiber = std::make_shared<Fiber>([&] { repeat(rounds.other, kWarmRounds + kRounds); });
  IOManager::GetThis()->schedule(fiber);
  repeat(rounds.one, kWarmRounds);
  mark();
  repeat(rounds.one, kRounds);
  mark();
  fiber->join();
}

Deadline inAnHour() { return Deadline::after(std::chrono::hours(1)); }

void overChannel() {
  Channel<int> there, back;
  const auto ask = [&] { (void)(there.send(1) && back.receive()); };
  run({ask, [&] { back.send(*there.receive()); }});
}

void withDeadline() {
  Channel<int> there, back;
  const auto ask = [&] { (void)(there.send(1, inAnHour()) && back.receive(inAnHour())); };
  run({ask, [&] { back.send(*there.receive(inAnHour()), inAnHour()); }});
}

void overSelect() {
  Channel<int> there, back, silent;
  const auto ignore = [](std::optional<int>) {};
  const auto ask = [&] { (void)(there.send(1) && select(onReceive(silent, ignore), onReceive(back, ignore))); };
  run({ask, [&] { back.send(*there.receive()); }});
}

void overMutex() {
  Mutex mutex;
  const auto lock = [&] {
    const Mutex::Lock guard(mutex);
    Fiber::YieldToReady();  // so that the other one finds it held
  };
  run({lock, lock});
}

void overSemaphore() {
  Semaphore there, back;
  const auto ask = [&] {
    there.notify();
    back.wait();
  };
  const auto answer = [&] {
    there.wait();
    back.notify();
  };
  run({ask, answer});
}

void overCondition() {
  Mutex mutex;
  ConditionVariable changed;
  bool turn = true;
  const auto pass = [&](bool mine) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return turn == mine; });
    turn = !mine;
    changed.notify_one();
  };
  run({[=] { pass(true); }, [=] { pass(false); }});
}

int handOff(int argc, char** argv) {
  const std::map<std::string, void (*)()> ways = {{"channel", overChannel},     {"deadline", withDeadline},
                                                  {"select", overSelect},       {"mutex", overMutex},
                                                  {"semaphore", overSemaphore}, {"condition", overCondition}};
  IOManager iom(1, false, "one");
  for (int i = 1; i < argc; ++i) {
    std::latch end(1);
    iom.schedule([&] {
      ways.at(argv[i])();
      end.count_down();
    });
    end.wait();
  }
  return 0;
}

}  // namespace
}  // namespace sylar

int main(int argc, char** argv) { return sylar::handOff(argc, argv); }
