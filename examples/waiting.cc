// Waiting for fibers and ending them: a group that is joined, one that must end by a deadline, and a fiber that cleans up after
// it was cancelled.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/iomanager.h"

namespace {

using sylar::Fiber;
using sylar::IOManager;

// [join]
/// Waits for all of `fibers`, then rethrows the exception of the first one in the list that failed.
void joinAll(const std::vector<Fiber::ptr>& fibers) {
  std::exception_ptr failure;
  for (const Fiber::ptr& fiber : fibers) {
    try {
      fiber->join();  // suspends this fiber, not the thread
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}
// [join]

std::string ask(int question) {
  if (question < 0) throw std::invalid_argument("no such question");
  usleep(50'000);  // stands for a distant server
  return std::to_string(question * question);
}

// [gather]
/// Asks all questions at the same time.
std::vector<std::string> askAll(const std::vector<int>& questions) {
  std::vector<std::string> answers(questions.size());
  std::vector<Fiber::ptr> fibers;
  for (size_t i = 0; i < questions.size(); ++i) {
    fibers.push_back(std::make_shared<Fiber>([&, i] { answers[i] = ask(questions[i]); }));
    IOManager::GetThis()->schedule(fibers.back());
  }
  joinAll(fibers);
  return answers;
}
// [gather]

// [deadline]
/// Waits for all of `fibers`, and cancels those that still run after `ms`. Returns true if that was not necessary.
bool joinWithin(uint64_t ms, const std::vector<Fiber::ptr>& fibers) {
  const sylar::Timer::ptr timer = IOManager::GetThis()->addTimer(ms, [fibers] {
    for (const Fiber::ptr& fiber : fibers) fiber->cancel();  // no effect on those that have ended
  });
  joinAll(fibers);
  return timer->cancel();  // false if it has fired
}
// [deadline]

// [cancelled]
void follow(int fd) {
  char buffer[256];
  ssize_t size;
  while ((size = read(fd, buffer, sizeof buffer)) > 0) {
    // ... use the data
  }
  if (size < 0 && errno == ECANCELED) std::puts("follow: cancelled");
  const sylar::this_fiber::CancelShield shield;  // lets the fiber wait again from here on
  usleep(10'000);
  std::puts("follow: cleaned up");
}
// [cancelled]

// [compute]
void count(std::atomic<uint64_t>& counter) {
  while (!sylar::this_fiber::cancelled()) {
    for (int i = 0; i < 1000; ++i) ++counter;
    Fiber::YieldToReady();  // lets the other fibers of this thread run
  }
}
// [compute]

void show() {
  const std::vector<std::string> answers = askAll({1, 2, 3});
  std::printf("answers: %s %s %s\n", answers[0].c_str(), answers[1].c_str(), answers[2].c_str());
  try {
    askAll({1, -1, 3});
  } catch (const std::invalid_argument& error) {
    std::printf("failed: %s\n", error.what());
  }

  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return std::perror("socketpair");
  std::atomic<uint64_t> counter{0};
  const std::vector<Fiber::ptr> fibers{std::make_shared<Fiber>([&ends] { follow(ends[0]); }),
                                       std::make_shared<Fiber>([&counter] { count(counter); })};
  for (const Fiber::ptr& fiber : fibers) IOManager::GetThis()->schedule(fiber);
  std::printf("in time: %s\n", joinWithin(100, fibers) ? "yes" : "no");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

int main() {
  IOManager iom(1, false, "waiting");
  iom.schedule(show);
}
