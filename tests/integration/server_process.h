// A real server for a test, whose program defines SYLAR_SERVERS as the path of servers.py from its folder.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/integration/child.h"
#include "tests/support/beside_program.h"

namespace sylar::test {

/// A real server in processes of its own (servers.py). Each call returns when it is done.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& name)
      : m_child({"python3", besideProgram(SYLAR_SERVERS), name}), m_port(std::stoi(m_child.line())) {}
  ~ServerProcess() {
    m_child.endInput();
    EXPECT_EQ(m_child.wait(), 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  int port() const { return m_port; }
  void suspend() { order("suspend"); }
  void resume() { order("resume"); }
  void kill() { order("kill"); }
  void start() { order("start"); }

 private:
  void order(const char* what) {
    m_child.tell(what);
    EXPECT_EQ(m_child.line(), "done") << what;
  }

  Child m_child;
  const int m_port;
};

/// A server for all tests of a program. It begins and ends on the main thread, whose child it is.
class ServerOfAllTests final : public testing::Environment {
 public:
  /// To be called before main.
  static const ServerOfAllTests& add(const std::string& name) {
    return static_cast<const ServerOfAllTests&>(*testing::AddGlobalTestEnvironment(new ServerOfAllTests(name)));
  }
  void SetUp() override { m_process = std::make_unique<ServerProcess>(m_name); }
  void TearDown() override { m_process = nullptr; }
  ServerProcess* operator->() const { return m_process.get(); }

 private:
  explicit ServerOfAllTests(std::string name) : m_name(std::move(name)) {}

  const std::string m_name;
  std::unique_ptr<ServerProcess> m_process;
};

}  // namespace sylar::test
