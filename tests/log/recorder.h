// For tests: an appender that keeps what it is given, written as a program that knew sylar would write it.
#pragma once

#include <string>
#include <vector>

#include "sylar/log.h"

namespace sylar::test {

class Recorder : public LogAppender {
 public:
  using ptr = std::shared_ptr<Recorder>;

  explicit Recorder(const std::string& pattern = "") {
    if (!pattern.empty()) setFormatter(std::make_shared<LogFormatter>(pattern));
  }
  void log(std::shared_ptr<Logger> logger, LogLevel::Level level, LogEvent::ptr event) override {
    if (level < m_level) return;
    MutexType::Lock lock(m_mutex);
    m_lines.push_back(m_formatter->format(logger, level, event));
  }
  std::string toYamlString() override { return "type: Recorder\n"; }

  std::vector<std::string> lines() {
    MutexType::Lock lock(m_mutex);
    return m_lines;
  }

 private:
  std::vector<std::string> m_lines;
};

}  // namespace sylar::test
