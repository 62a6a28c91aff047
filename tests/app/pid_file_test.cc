#include "sylar/app/pid_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

namespace sylar {
namespace {

namespace fs = std::filesystem;

class PidFileTest : public testing::Test {
 protected:
  PidFileTest() {
    std::string pattern = testing::TempDir() + "pid_fileXXXXXX";
    m_folder = ::mkdtemp(pattern.data());
  }
  ~PidFileTest() override { fs::remove_all(m_folder); }

  std::string path(const std::string& name = "demo.pid") const { return m_folder / name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name = "demo.pid") const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expectRefused(const std::string& reason) const {
    try {
      const PidFile file(path());
      FAIL() << "it is taken";
    } catch (const std::runtime_error& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(reason), std::string::npos) << refusal.what();
    }
  }

 private:
  fs::path m_folder;
};

TEST_F(PidFileTest, TellsTheProcessAndGoesWithIt) {
  {
    const PidFile file(path());
    EXPECT_EQ(read(), std::to_string(::getpid()) + '\n');
    expectRefused("a running service holds it");
    EXPECT_EQ(read(), std::to_string(::getpid()) + '\n');
  }
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(PidFileTest, TakesTheFileOfAServiceThatHasDied) {
  for (const char* text : {"", "1234567", "99\n"}) {
    write("demo.pid", text);
    const PidFile file(path());
    EXPECT_EQ(read(), std::to_string(::getpid()) + '\n');
  }
}

// Somebody else may have chosen where it leads.
// CD-G8
TEST_F(PidFileTest, IsHandedOverWithItsLock) {
  {
    auto old = std::make_unique<PidFile>(path());
    write("demo.pid", "1\n");  // as if that one were another process
    PidFile file(path(), ::dup(old->fd()));
    EXPECT_EQ(read(), "1\n");
    file.takeOver();
    EXPECT_EQ(read(), std::to_string(::getpid()) + '\n');
    write("demo.pid", "1\n");  // so that the old one finds the number of another
    old.reset();
    EXPECT_EQ(read(), "1\n");
    file.takeOver();
    expectRefused("a running service holds it");
  }
  EXPECT_FALSE(fs::exists(path()));
}

// CD-G8
TEST_F(PidFileTest, ADescriptorOfAnotherFileIsNotTaken) {
  write("other", "");
  const PidFile file(path(), ::open(path("other").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(read(), std::to_string(::getpid()) + '\n');
  EXPECT_EQ(read("other"), "");
}

TEST_F(PidFileTest, FollowsNoLink) {
  write("target", "7\n");
  fs::create_symlink(path("target"), path());
  expectRefused("is a link");
  EXPECT_EQ(read("target"), "7\n");
  EXPECT_TRUE(fs::is_symlink(path()));
}

TEST_F(PidFileTest, LeavesAloneWhatIsNoPidFile) {
  for (const char* text : {"notes", "12 13\n", "\n", "-1\n", "12\n\n", "1111111111111111111111111111111111111111"}) {
    write("demo.pid", text);
    expectRefused("has something else in it");
    EXPECT_EQ(read(), text);
  }
  fs::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  expectRefused("demo.pid");
  EXPECT_TRUE(fs::is_fifo(path()));
  fs::remove(path());
  fs::create_directory(path());
  expectRefused("demo.pid");
}

TEST_F(PidFileTest, RemovesOnlyItsOwn) {
  {
    const PidFile file(path());
    fs::remove(path());
    write("demo.pid", "another service's");
  }
  EXPECT_EQ(read(), "another service's");
}

}  // namespace
}  // namespace sylar
