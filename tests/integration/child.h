// For integration tests: programs that the test starts and ends.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace sylar::test {

/// A program that ends with its scope at the latest, and with the thread that started it. Its input and output go through pipes.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    int input[2];
    int output[2];
    EXPECT_EQ(::pipe2(input, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
    m_pid = ::fork();
    if (m_pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(input[0], STDIN_FILENO);
      ::dup2(output[1], STDOUT_FILENO);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    m_input = input[1];
    m_output = output[0];
  }
  ~Child() {
    if (m_pid > 0) ::kill(m_pid, SIGKILL);
    wait();
    endInput();
    ::close(m_output);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return m_pid; }
  void signal(int number) const { EXPECT_EQ(::kill(m_pid, number), 0); }

  /// Its exit status; 1000 + n if signal n ended it.
  int wait() {
    if (m_pid <= 0) return m_status;
    int status = 0;
    while (::waitpid(m_pid, &status, 0) < 0 && errno == EINTR) continue;
    m_pid = -1;
    m_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return m_status;
  }

  /// Writes a line to its input.
  void tell(const std::string& text) const {
    const std::string line = text + '\n';
    EXPECT_EQ(::write(m_input, line.data(), line.size()), ssize_t(line.size()));
  }
  void endInput() {
    if (m_input >= 0) ::close(std::exchange(m_input, -1));
  }

  /// The next line of its output without the newline; empty at the end.
  std::string line() {
    std::string text;
    for (char c; ::read(m_output, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

 private:
  pid_t m_pid = -1;
  int m_status = -1;
  int m_input = -1;
  int m_output = -1;
};

}  // namespace sylar::test
