// A real server for a test, whose program defines SYLAR_SERVERS as the path of servers.py.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/integration/child.h"

namespace sylar::test {

/// A real server in processes of its own (servers.py). Each call returns when it is done.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& name)
      : m_child({"python3", SYLAR_SERVERS, name}), m_port(std::stoi(m_child.line())) {}
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

}  // namespace sylar::test
