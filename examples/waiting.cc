// Waiting for fibers: a group of tasks, of which the first that fails ends the others.
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "sylar/iomanager.h"
#include "sylar/sync/task_group.h"

namespace {

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

void show() {
  for (const std::string& answer : askAll({1, 2, 3})) std::printf("answer: %s\n", answer.c_str());
  try {
    askAll({1, -1, 3});
  } catch (const std::invalid_argument& error) {
    std::printf("failed: %s\n", error.what());
  }
}

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "waiting");
  iom.schedule(show);
}
