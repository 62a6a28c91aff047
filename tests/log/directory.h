// For tests: a directory of the test's own, and what is in its files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sylar::test {

class Directory {
 public:
  Directory() : m_path(testing::TempDir() + "sylar_log_XXXXXX") { EXPECT_NE(::mkdtemp(m_path.data()), nullptr); }
  ~Directory() { std::filesystem::remove_all(m_path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string operator/(const std::string& name) const { return m_path + "/" + name; }

 private:
  std::string m_path;
};

inline std::string contentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace sylar::test
