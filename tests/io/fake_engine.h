// For tests of entries: an engine that only writes down what it is asked, and an entry as the table makes them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sylar/io/fd_entry.h"
#include "sylar/sched/waker.h"

namespace sylar::test {

constexpr int kFd = 7;

struct FakeEngine {
  using Waker = sylar::Waker;

  struct Call {
    std::string what;
    uint32_t generation = 0;
    uint32_t events = 0;
    friend bool operator==(const Call&, const Call&) = default;
  };

  int add(int fd, uint32_t generation, uint32_t events) { return note("add", fd, generation, events); }
  int modify(int fd, uint32_t generation, uint32_t events) { return note("modify", fd, generation, events); }
  void remove(int fd) { note("remove", fd, 0, 0); }
  bool retired() const { return ended; }
  static void closeNumber(int fd) { closed_later.push_back(fd); }
  static bool isOpen(int /*fd*/) { return number_is_open; }
  static void closing(int fd, uint32_t generation) {
    if (on_closing) on_closing(fd, generation);
  }

  std::vector<Call> calls;
  std::map<std::string, int> answers;  ///< what else than 0
  std::function<void()> on_call;       ///< runs once, in the next call: under the entry's lock
  bool ended = false;
  static inline std::vector<int> closed_later;
  static inline std::function<void(int, uint32_t)> on_closing;
  static inline std::atomic<bool> number_is_open{true};

 private:
  int note(const std::string& what, int fd, uint32_t generation, uint32_t events) {
    EXPECT_EQ(fd, kFd);
    calls.push_back({what, generation, events});
    if (on_call) std::exchange(on_call, nullptr)();
    return answers[what];
  }
};
std::ostream& operator<<(std::ostream& out, const FakeEngine::Call& call) {
  return out << call.what << " of generation " << call.generation << " for " << std::hex << call.events << std::dec;
}
using EngineCalls = std::vector<FakeEngine::Call>;

/// An entry as the table makes them: memory that is all zero.
struct ZeroMemory {
  ZeroMemory() { std::memset(bytes, 0, sizeof bytes); }
  FdEntry<FakeEngine>& entry() { return *reinterpret_cast<FdEntry<FakeEngine>*>(bytes); }
  alignas(FdEntry<FakeEngine>) std::byte bytes[sizeof(FdEntry<FakeEngine>)];
};

}  // namespace sylar::test
