// For the tests of ttlkv: an engine without sockets, whose time of day the test sets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/ttlkv/engine.h"
#include "examples/ttlkv/request_reader.h"
#include "sylar/clock.h"

namespace ttlkv::test {

inline constexpr int64_t kStartMs = 1'800'000'000'000;

/// A time of day that runs with a clock of the library, and can be set.
class TestWallClock final : public WallClock {
 public:
  explicit TestWallClock(const sylar::Clock& clock) : m_clock(clock) {}
  int64_t nowMs() const override { return kStartMs + m_clock.nowNs() / 1'000'000 + m_step_ms; }
  void step(std::chrono::milliseconds step) { m_step_ms += step.count(); }

 private:
  const sylar::Clock& m_clock;
  std::atomic<int64_t> m_step_ms{0};
};

/// The session of one client.
class TestClient {
 public:
  explicit TestClient(Engine& engine) : m_engine(engine) {
    m_session.outbox = [this]() -> Outbox& { return outbox; };
  }
  ~TestClient() { m_engine.forget(m_session); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  /// Returns the bytes of the reply to a line.
  std::string ask(std::string_view line) {
    std::vector<std::string> words;
    EXPECT_TRUE(splitWords(line, words)) << line;
    std::vector<std::string_view> args(words.begin(), words.end());
    return ask(std::move(args));
  }
  std::string ask(std::vector<std::string_view> args) {
    std::string out;
    m_engine.execute(m_session, args, out);
    if (m_session.subscriber == nullptr) return out;
    outbox.append(out);
    return messages();
  }
  /// Returns the bytes that a subscriber would have got by now.
  std::string messages() {
    std::string bytes;
    outbox.append("\n");  // so that there is something to take
    outbox.take(bytes);
    bytes.pop_back();
    return bytes;
  }

  bool overflowed = false;
  Outbox outbox{1000, [this] { overflowed = true; }};

 private:
  Engine& m_engine;
  Session m_session;
};

/// An engine on a manual clock. Nothing expires actively.
struct Store {
  explicit Store(Options options = {}) : engine(wall, std::move(options)) {}
  std::string ask(std::string_view line) { return client.ask(line); }

  sylar::ManualClock clock;
  TestWallClock wall{clock};
  Engine engine;
  TestClient client{engine};
};

}  // namespace ttlkv::test
