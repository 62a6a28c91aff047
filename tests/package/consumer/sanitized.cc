// What a sanitizer says of a program with fibers, whose library was built without one:
//
//   sanitized CASE     each ends with 0 and says nothing if the sanitizer finds nothing
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/fiber.h"
#include "sylar/hook.h"
#include "sylar/iomanager.h"
#include "sylar/threads_are_fibers.h"

namespace {

template <class T>
[[gnu::noinline]] T* opaque(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

/// Throws from far down, where frames have poisoned the stack, and waits on the way.
[[gnu::noinline]] int dive(int levels) {
  volatile char frame[200];
  for (auto& byte : frame) byte = static_cast<char>(levels);
  if (levels == 0) throw std::runtime_error("the bottom");
  if (levels % 7 == 0) ::usleep(10);
  return dive(levels - 1) + frame[levels];
}

void diveOften() {
  for (int i = 0; i < 10; ++i) {
    try {
      dive(60);
      std::abort();
    } catch (const std::exception&) {
    }
    char text[64];
    std::snprintf(text, sizeof text, "%d", i);  // writes over what the frames have poisoned
    ::usleep(100);
  }
}

void inFibers(const std::function<void()>& body, int count = 20) {
  sylar::IOManager iom(2, false, "fibers");
  for (int i = 0; i < count; ++i) iom.schedule(body);
}

void byHand(const std::function<void()>& body) {
  const auto fiber = std::make_shared<sylar::Fiber>(body);
  while (fiber->getState() != sylar::Fiber::TERM) fiber->resume();
}

void exceptions() { inFibers(diveOften); }
void exceptionsByHand() {
  byHand([] {
    diveOften();
    byHand([] {
      sylar::Fiber::YieldToReady();
      diveOften();
    });
    diveOften();
  });
  diveOften();
}
void exceptionsInThreads() {
  sylar::ThreadsAreFibers on;
  inFibers(
      [] {
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i) threads.emplace_back(diveOften);
        diveOften();
        for (std::thread& thread : threads) thread.join();
      },
      5);
}
/// Ends in the middle: what only a suspended fiber, or the frame below a running one, knows is no leak.
void exitAmongFibers() {
  const auto known_to_main = std::make_unique<std::string>(1000, 'm');
  static sylar::IOManager iom(1, false, "left");
  static std::atomic<int> waiting{0};
  for (int i = 0; i < 10; ++i) {
    iom.schedule([] {
      const auto known_to_fiber = std::make_unique<std::string>(1000, 'f');
      const std::unique_ptr<int> moved(opaque(new int(1)));
      ++waiting;
      ::sleep(1000);
      std::abort();
    });
  }
  byHand([] {
    while (waiting < 10) ::usleep(1000);
    const auto known_to_runner = std::make_unique<std::string>(1000, 'r');
    std::exit(0);
  });
}
void threadsAmongFibers() {
  static sylar::ThreadsAreFibers on;
  sylar::IOManager iom(1, false, "left");
  static std::atomic<bool> waits{false};
  iom.schedule([] {
    std::thread([] {
      const auto known_to_thread = std::make_unique<std::string>(1000, 't');
      waits = true;
      ::sleep(1000);
    }).detach();
    while (!waits) ::usleep(1000);
    std::exit(0);
  });
  iom.stop();
}

void useAfterFree() {
  byHand([] {
    auto heap = std::make_unique<int>(1);
    int* const late = opaque(heap.get());
    sylar::Fiber::YieldToReady();
    heap.reset();
    *late = 2;
  });
}
void overflow() {
  inFibers([] {
    int local[4] = {};
    ::usleep(10);
    opaque(local)[4] = 1;
  });
}
int* g_late = nullptr;
[[gnu::noinline]] void leaveALocal() {
  int local = 1;
  g_late = &local;
}
void useAfterReturn() {
  inFibers(
      [] {
        leaveALocal();
        ::usleep(10);
        *opaque(g_late) = 2;
      },
      1);
}
void leak() {
  inFibers(
      [] {
        auto* const lost = opaque(new int[7]);
        ::usleep(10);
        *lost = 1;
      },
      1);
}
void hitTheGuard() {
  inFibers([] { dive(1 << 20); }, 1);
}

}  // namespace

int main(int argc, char** argv) {
  ::alarm(120);
  const std::pair<std::string_view, void (*)()> cases[] = {
      {"exceptions", exceptions}, {"by_hand", exceptionsByHand},        {"threads", exceptionsInThreads},
      {"exit", exitAmongFibers},  {"exit_thread", threadsAmongFibers},  {"use_after_free", useAfterFree},
      {"overflow", overflow},     {"use_after_return", useAfterReturn}, {"leak", leak},
      {"guard", hitTheGuard}};
  for (const auto& [name, run] : cases) {
    if (argc == 2 && name == argv[1]) return run(), 0;
  }
  std::cerr << "no such case\n";
  return 2;
}
