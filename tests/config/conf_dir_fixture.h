// For tests: a directory of settings that goes away with the test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sylar/config.h"

namespace sylar::test {

class ConfDir : public testing::Test {
 protected:
  ConfDir() {
    std::string name = testing::TempDir() + "sylar_conf_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    m_path = name;
  }
  ~ConfDir() override { std::filesystem::remove_all(m_path); }

  const std::string& path() const { return m_path; }
  std::string pathOf(const std::string& name) const { return m_path + '/' + name; }

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = pathOf(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream << text;
    stream.close();
    ASSERT_TRUE(stream) << file;
  }

  LoadResult load(bool force = false, UnknownKeys unknown = UnknownKeys::kReport) const {
    return Config::LoadFromConfDir(m_path, force, unknown);
  }

 private:
  std::string m_path;
};

}  // namespace sylar::test
