// Waiting for fibers and ending them: a group of tasks, calls that are bounded by a deadline, and a fiber that cleans up after it was
// cancelled.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/task_group.h"

namespace {

using namespace std::chrono_literals;
using sylar::Deadline;
using sylar::Fiber;

std::string ask(int question) {
  if (question < 0) throw std::invalid_argument("no such question");
  usleep(50'000);  // stands for a distant server
  return std::to_string(question * question);
}

// [gather]
/// Asks all questions at the same time. If one cannot be answered, the others are cancelled.
std::vector<std::string> askAll(const std::vector<int>& questions) {
  std::vector<std::string> answers(questions.size());
  sylar::TaskGroup group;
  for (size_t i = 0; i < questions.size(); ++i) {
    group.spawn([&, i] { answers[i] = ask(questions[i]); });
  }
  group.join();  // throws the first exception of a task
  return answers;
}
// [gather]

// [deadline]
/// Reads a line, however slowly it comes, in at most 100 ms. Returns "" if there is none by then.
std::string readLine(int fd) {
  return sylar::withDeadline(Deadline::after(100ms), [fd] {
    std::string line;
    char byte;
    while (read(fd, &byte, 1) == 1) {  // -1 with EAGAIN when the time is up
      if (byte == '\n') return line;
      line += byte;
    }
    return std::string();
  });
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
  if (write(ends[1], "first\nsec", 9) != 9) return std::perror("write");
  std::printf("line: '%s'\n", readLine(ends[0]).c_str());
  std::printf("line: '%s'\n", readLine(ends[0]).c_str());

  std::atomic<uint64_t> counter{0};
  sylar::TaskGroup group;
  group.spawn([&] { follow(ends[0]); });
  group.spawn([&] { count(counter); });
  std::printf("in time: %s\n", group.join(Deadline::after(100ms)) ? "yes" : "no");
  group.cancel();
  group.join();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "waiting");
  iom.schedule(show);
}
