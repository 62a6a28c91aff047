// HA-8: a read by stdio from a pipe, a socket or a terminal suspends its fiber only, and gives what libc's gives.
#include <stdio_ext.h>

#include <functional>
#include <memory>

#include "sylar/sync/blocking_pool.h"
#include "tests/hook/support.h"

// What a fortified or an old binary calls, and what the header may have inline.
extern "C" {
char* __fgets_chk(char* line, size_t line_size, int size, FILE* file);
size_t __fread_chk(void* to, size_t to_size, size_t size, size_t count, FILE* file);
ssize_t __getdelim(char** line, size_t* size, int delimiter, FILE* file);
int _IO_getc(FILE* file);
int fscanfOfOldPrograms(FILE* file, const char* format, ...) __asm__("fscanf");
}

namespace sylar::test {
namespace {

/// A stream that reads what is sent to it.
struct Stream {
  explicit Stream(const Ends& ends) : file(::fdopen(ends[0], "r")), m_writer(ends[1]) {}
  ~Stream() {
    ::fclose(file);
    end();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void send(const std::string& text) const { EXPECT_EQ(::write(m_writer, text.data(), text.size()), ssize_t(text.size())); }
  void end() {
    if (m_writer < 0) return;
    EXPECT_EQ(::close(std::exchange(m_writer, -1)), 0);
  }

  FILE* const file;

 private:
  int m_writer;
};

Ends pipeEnds() { return makePipe(hookedCalls()); }
Ends socketEnds() { return makeUnix(hookedCalls(), SOCK_STREAM); }

std::string lineOf(char* line, ssize_t size) {
  const std::string text = size < 0 ? "none" : std::string(line, static_cast<size_t>(size));
  ::free(line);
  return text;
}

/// A call that reads what is sent in two pieces, between which it waits.
struct ReadCase {
  const char* name;
  const char* first;
  const char* rest;
  const char* result;
  std::string (*read)(FILE* file);
};
std::ostream& operator<<(std::ostream& out, const ReadCase& one) { return out << one.name; }

const ReadCase kReadCases[] = {
    {"fgets", "a li", "ne\nmore", "a line\n",
     [](FILE* file) {
       char line[64] = {};
       return std::string(::fgets(line, sizeof line, file) != nullptr ? line : "none");
     }},
    {"fgets_chk", "a li", "ne\n", "a line\n",
     [](FILE* file) {
       char line[64] = {};
       return std::string(::__fgets_chk(line, sizeof line, sizeof line, file) != nullptr ? line : "none");
     }},
    {"fgetc", "", "xy", "x", [](FILE* file) { return std::string(1, static_cast<char>(::fgetc(file))); }},
    {"getc", "", "xy", "x", [](FILE* file) { return std::string(1, static_cast<char>((getc)(file))); }},
    {"IO_getc", "", "xy", "x", [](FILE* file) { return std::string(1, static_cast<char>(::_IO_getc(file))); }},
    {"fread", "four", "five", "fourfi",
     [](FILE* file) {
       char bytes[6] = {};
       return std::string(bytes, ::fread(bytes, 1, sizeof bytes, file));
     }},
    {"fread_chk", "four", "five", "fourfi",
     [](FILE* file) {
       char bytes[6] = {};
       return std::string(bytes, ::__fread_chk(bytes, sizeof bytes, 1, sizeof bytes, file));
     }},
    {"getline", "a li", "ne\nmore", "a line\n",
     [](FILE* file) {
       char* line = nullptr;
       size_t size = 0;
       const ssize_t n = ::getline(&line, &size, file);
       return lineOf(line, n);
     }},
    {"getdelim", "a;", "b;", "a;b",
     [](FILE* file) {
       char* line = nullptr;
       size_t size = 0;
       const ssize_t first = ::getdelim(&line, &size, ';', file);
       const std::string begin = lineOf(line, first);
       const int next = ::fgetc(file);
       return begin + static_cast<char>(next);
     }},
    {"underscore_getdelim", "a", "b;", "ab;",
     [](FILE* file) {
       char* line = nullptr;
       size_t size = 0;
       const ssize_t n = ::__getdelim(&line, &size, ';', file);
       return lineOf(line, n);
     }},
    {"fscanf", "1", "2 34 ", "12 34",
     [](FILE* file) {
       int one = 0, two = 0;
       EXPECT_EQ(::fscanf(file, "%d %d", &one, &two), 2);
       return std::to_string(one) + " " + std::to_string(two);
     }},
    {"fscanf_of_old_programs", "1", "2 34 ", "12 34",
     [](FILE* file) {
       int one = 0, two = 0;
       EXPECT_EQ(::fscanfOfOldPrograms(file, "%d %d", &one, &two), 2);
       return std::to_string(one) + " " + std::to_string(two);
     }},
};

class StdioRead : public testing::TestWithParam<ReadCase> {
 protected:
  ~StdioRead() override { BlockingPool::process().endAll(); }

  /// Reads what is sent while the call waits.
  void readsFrom(const Stream& stream) {
    std::string result;
    bool others_ran = false;
    inFiber([&] {
      const auto reader = std::make_shared<Fiber>([&] { result = GetParam().read(stream.file); });
      IOManager::GetThis()->schedule(reader);
      while (stateOf(*reader) != FiberState::kParked) Fiber::YieldToReady();
      others_ran = true;
      stream.send(GetParam().first);
      untilPolled();
      stream.send(GetParam().rest);
      reader->join();
    });
    EXPECT_TRUE(others_ran);
    EXPECT_EQ(result, GetParam().result);
  }
};

TEST_P(StdioRead, FromAPipeSuspendsTheFiberOnly) { readsFrom(Stream(pipeEnds())); }
TEST_P(StdioRead, FromASocketSuspendsTheFiberOnly) { readsFrom(Stream(socketEnds())); }

// What libc gives on a plain thread is what the table says.
TEST_P(StdioRead, GivesTheSameOnAThread) {
  const Stream stream(pipeEnds());
  stream.send(std::string(GetParam().first) + GetParam().rest);
  EXPECT_EQ(GetParam().read(stream.file), GetParam().result);
}

INSTANTIATE_TEST_SUITE_P(Calls, StdioRead, testing::ValuesIn(kReadCases), [](const auto& one) { return one.param.name; });

class Stdio : public testing::Test {
 protected:
  ~Stdio() override { BlockingPool::process().endAll(); }
  Stream m_stream{pipeEnds()};
};

// What the stream has buffered is read on the spot.
TEST_F(Stdio, BufferedLinesNeedNoHelper) {
  m_stream.send("one\ntwo\nthree\n");
  inFiber([&] {
    char line[64];
    ASSERT_STREQ(::fgets(line, sizeof line, m_stream.file), "one\n");
    const size_t helpers = BlockingPool::process().threads();
    BlockingPool::process().endAll();
    ASSERT_STREQ(::fgets(line, sizeof line, m_stream.file), "two\n");
    EXPECT_EQ(::fgetc(m_stream.file), 't');
    EXPECT_EQ(::ungetc('T', m_stream.file), 'T');
    ASSERT_STREQ(::fgets(line, 3, m_stream.file), "Th");
    EXPECT_EQ(::fread(line, 1, 3, m_stream.file), 3u);
    EXPECT_EQ(helpers, 1u);
    EXPECT_EQ(BlockingPool::process().threads(), 0u);
  });
}

// Nobody knows how much a scanf needs. What it leaves is enough for the next.
TEST_F(Stdio, AScanReadsWhatTheLastOneHasLeft) {
  m_stream.send("1 2 3\n");
  int numbers[3] = {};
  inFiber([&] {
    for (int& number : numbers) EXPECT_EQ(::fscanf(m_stream.file, "%d", &number), 1);
  });
  EXPECT_EQ(numbers[0] + 10 * numbers[1] + 100 * numbers[2], 321);
}

TEST_F(Stdio, EndOfInputIsTold) {
  m_stream.send("last");
  m_stream.end();
  inFiber([&] {
    char line[64];
    ASSERT_STREQ(::fgets(line, sizeof line, m_stream.file), "last");
    EXPECT_EQ(::fgets(line, sizeof line, m_stream.file), nullptr);
    EXPECT_TRUE(::feof(m_stream.file));
    EXPECT_FALSE(::ferror(m_stream.file));
  });
}

TEST_F(Stdio, ACancelEndsTheWait) {
  int error = 0;
  bool failed = false;
  inFiber([&] {
    const auto reader = std::make_shared<Fiber>([&] {
      char line[64];
      failed = ::fgets(line, sizeof line, m_stream.file) == nullptr && ::ferror(m_stream.file) != 0;
      error = errno;
    });
    IOManager::GetThis()->schedule(reader);
    while (stateOf(*reader) != FiberState::kParked) Fiber::YieldToReady();
    reader->cancel();
    reader->join();
  });
  EXPECT_TRUE(failed);
  EXPECT_EQ(error, ECANCELED);
}

// A helper thread would wait for the lock without end.
TEST_F(Stdio, AStreamThatTheCallerHasLockedIsReadOnTheSpot) {
  m_stream.send("locked\n");
  inFiber([&] {
    char line[64];
    ::flockfile(m_stream.file);
    EXPECT_STREQ(::fgets(line, sizeof line, m_stream.file), "locked\n");
    ::funlockfile(m_stream.file);
    EXPECT_EQ(BlockingPool::process().threads(), 0u);
  });
}

// Two fibers of one worker read lines of one stream; each line is one fiber's.
TEST_F(Stdio, FibersShareAStream) {
  constexpr int kLines = 200;
  std::vector<int> seen(kLines);
  inFiber([&] {
    std::vector<Fiber::ptr> readers;
    for (int i = 0; i < 4; ++i) {
      readers.push_back(std::make_shared<Fiber>([&] {
        char line[64];
        while (::fgets(line, sizeof line, m_stream.file) != nullptr) ++seen[static_cast<size_t>(std::atoi(line))];
      }));
      IOManager::GetThis()->schedule(readers.back());
    }
    for (int i = 0; i < kLines; ++i) {
      m_stream.send(std::to_string(i) + "\n");
      if (i % 7 == 0) Fiber::YieldToReady();
    }
    m_stream.end();
    for (const auto& reader : readers) reader->join();
  });
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), kLines);
}

// The usual way to read what a program prints.
TEST_F(Stdio, TheOutputOfACommandIsReadInAFiber) {
  std::string output;
  bool other = false;
  inFiber([&] {
    FILE* const command = ::popen("read line; echo got $line", "r");
    ASSERT_NE(command, nullptr);
    ::pclose(command);
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const std::string script = "read line <&" + std::to_string(pipe[0]) + "; echo got $line";
    FILE* const waiting = ::popen(script.c_str(), "r");
    ASSERT_NE(waiting, nullptr);
    IOManager::GetThis()->schedule([&] {
      other = true;
      EXPECT_EQ(::write(pipe[1], "it\n", 3), 3);
    });
    char line[64] = {};
    EXPECT_NE(::fgets(line, sizeof line, waiting), nullptr);
    output = line;
    EXPECT_EQ(::pclose(waiting), 0);
    ::close(pipe[0]), ::close(pipe[1]);
  });
  EXPECT_TRUE(other);
  EXPECT_EQ(output, "got it\n");
}

// A file never waits.
TEST_F(Stdio, FilesAreReadOnTheSpot) {
  inFiber([&] {
    FILE* const file = ::fopen("/proc/self/status", "r");
    ASSERT_NE(file, nullptr);
    char line[256];
    int lines = 0;
    while (::fgets(line, sizeof line, file) != nullptr) ++lines;
    EXPECT_GT(lines, 10);
    ::fclose(file);
    EXPECT_EQ(BlockingPool::process().threads(), 0u);
  });
}

}  // namespace
}  // namespace sylar::test
