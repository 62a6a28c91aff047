// HA-8: a read or write by stdio on a pipe, a socket or a terminal suspends its fiber only, and does what libc's does.
#include <limits.h>
#include <locale.h>
#include <stdio_ext.h>

#include <cstdarg>
#include <functional>
#include <memory>

#include "sylar/sync/blocking_pool.h"
#include "tests/hook/fd/kinds.h"
#include "tests/hook/support.h"

// What a fortified or an old binary calls, and what the header may have inline.
extern "C" {
char* __fgets_chk(char* line, size_t line_size, int size, FILE* file);
size_t __fread_chk(void* to, size_t to_size, size_t size, size_t count, FILE* file);
ssize_t __getdelim(char** line, size_t* size, int delimiter, FILE* file);
int _IO_getc(FILE* file);
int fscanfOfOldPrograms(FILE* file, const char* format, ...) __asm__("fscanf");
int _IO_putc(int byte, FILE* file);
int __fprintf_chk(FILE* file, int flag, const char* format, ...);
int __vfprintf_chk(FILE* file, int flag, const char* format, va_list from);
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

// What the stream has buffered is read at once.
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

// ---- Writes. -----------------------------------------------------------------------------------------------------------------

/// A pipe or socket, and a stream that writes to it.
class Sink {
 public:
  explicit Sink(const Ends& ends, int mode = _IOFBF) : file(::fdopen(writerOf(ends), "w")), m_reader(readerOf(ends)) {
    EXPECT_TRUE(mode == _IOFBF || ::setvbuf(file, nullptr, mode, 0) == 0);
  }
  ~Sink() {
    endReading();
    ::signal(SIGPIPE, SIG_IGN);
    if (file != nullptr) ::fclose(file);
    ::signal(SIGPIPE, SIG_DFL);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Makes it take nothing more until it is read.
  void fill() {
    const int fd = ::fileno(file);
    const int flags = ::fcntl(fd, F_GETFL);
    EXPECT_EQ(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    const std::string filling(4096, '.');
    ssize_t n;
    while ((n = ::write(fd, filling.data(), filling.size())) > 0) m_filled += static_cast<size_t>(n);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::fcntl(fd, F_SETFL, flags), 0);
  }
  /// Reads what it was filled with, and then `size` bytes, which it returns.
  std::string read(size_t size) {
    std::string all(m_filled + size, 0);
    size_t have = 0;
    ssize_t n;
    while (have < all.size() && (n = ::read(m_reader, all.data() + have, all.size() - have)) > 0) have += static_cast<size_t>(n);
    all.resize(have);
    return all.substr(std::min(std::exchange(m_filled, 0), have));
  }
  void endReading() { EXPECT_TRUE(m_reader < 0 || ::close(std::exchange(m_reader, -1)) == 0); }
  void close() { EXPECT_EQ(::fclose(std::exchange(file, nullptr)), 0); }

  FILE* file;

 private:
  static int readerOf(const Ends& ends) { return ends[0]; }
  static int writerOf(const Ends& ends) { return ends[1]; }

  int m_reader;
  size_t m_filled = 0;
};

/// A call that writes `text`.
struct WriteCase {
  const char* name;
  const char* text;
  void (*write)(FILE* file);
};
std::ostream& operator<<(std::ostream& out, const WriteCase& one) { return out << one.name; }

int printed(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = ::vfprintf(file, format, arguments);
  va_end(arguments);
  return size;
}
int printedByFortified(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = ::__vfprintf_chk(file, 1, format, arguments);
  va_end(arguments);
  return size;
}
/// Makes `call` with `file` as stdout.
void asStdout(FILE* file, const std::function<void()>& call) {
  FILE* const before = std::exchange(stdout, file);
  call();
  stdout = before;
}

const WriteCase kWriteCases[] = {
    {"fputs", "a line\n", [](FILE* file) { EXPECT_GE(::fputs("a line\n", file), 0); }},
    {"fputc", "x", [](FILE* file) { EXPECT_EQ(::fputc('x', file), 'x'); }},
    {"putc", "x", [](FILE* file) { EXPECT_EQ((putc)('x', file), 'x'); }},
    {"IO_putc", "x", [](FILE* file) { EXPECT_EQ(::_IO_putc('x', file), 'x'); }},
    {"fwrite", "fourfour", [](FILE* file) { EXPECT_EQ(::fwrite("fourfour", 4, 2, file), 2u); }},
    {"fprintf", "one 1", [](FILE* file) { EXPECT_EQ(::fprintf(file, "%s %d", "one", 1), 5); }},
    {"vfprintf", "two 2", [](FILE* file) { EXPECT_EQ(printed(file, "%s %d", "two", 2), 5); }},
    {"fprintf_chk", "one 1", [](FILE* file) { EXPECT_EQ(::__fprintf_chk(file, 1, "%s %d", "one", 1), 5); }},
    {"vfprintf_chk", "two 2", [](FILE* file) { EXPECT_EQ(printedByFortified(file, "%s %d", "two", 2), 5); }},
    {"printf", "one 1", [](FILE* file) { asStdout(file, [] { EXPECT_EQ(std::printf("%s %d", "one", 1), 5); }); }},
    {"puts", "a line\n", [](FILE* file) { asStdout(file, [] { EXPECT_GE(::puts("a line"), 0); }); }},
    {"putchar", "x", [](FILE* file) { asStdout(file, [] { EXPECT_EQ((putchar)('x'), 'x'); }); }},
};

class StdioWrite : public testing::TestWithParam<WriteCase> {
 protected:
  ~StdioWrite() override { BlockingPool::process().endAll(); }

  /// Writes while nothing is taken. The stream has no buffer, or the flush waits.
  void writesTo(Sink sink, bool flushes) {
    std::string text;
    bool others_ran = false;
    sink.fill();
    inFiber([&] {
      const auto writer = std::make_shared<Fiber>([&] {
        GetParam().write(sink.file);
        EXPECT_TRUE(!flushes || ::fflush(sink.file) == 0);
      });
      IOManager::GetThis()->schedule(writer);
      while (stateOf(*writer) != FiberState::kParked) Fiber::YieldToReady();
      others_ran = true;
      text = sink.read(std::strlen(GetParam().text));
      writer->join();
      EXPECT_EQ(BlockingPool::process().threads(), 0u);
    });
    EXPECT_TRUE(others_ran);
    EXPECT_EQ(text, GetParam().text);
  }
};

TEST_P(StdioWrite, ToAFullPipeSuspendsTheFiberOnly) { writesTo(Sink(pipeEnds(), _IONBF), false); }
TEST_P(StdioWrite, ToAFullSocketSuspendsTheFiberOnly) { writesTo(Sink(socketEnds(), _IONBF), false); }
TEST_P(StdioWrite, AFlushToAFullPipeSuspendsTheFiberOnly) { writesTo(Sink(pipeEnds()), true); }

// What libc writes on a plain thread is what the table says.
TEST_P(StdioWrite, WritesTheSameOnAThread) {
  Sink sink(pipeEnds(), _IONBF);
  GetParam().write(sink.file);
  EXPECT_EQ(sink.read(std::strlen(GetParam().text)), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(Calls, StdioWrite, testing::ValuesIn(kWriteCases), [](const auto& one) { return one.param.name; });

class StdioSink : public testing::Test {
 protected:
  ~StdioSink() override { BlockingPool::process().endAll(); }
  Sink m_sink{pipeEnds()};
};

// A buffer of a page takes what the pipe does not, from its first byte to its last.
TEST_F(StdioSink, ABufferWithRoomNeedsNoPipe) {
  m_sink.fill();
  std::string text;
  inFiber([&] {
    for (size_t i = 0; i < 4095; ++i) {
      ASSERT_EQ(::fputc('a' + static_cast<int>(i % 26), m_sink.file), 'a' + static_cast<int>(i % 26));
      text += static_cast<char>('a' + i % 26);
    }
    ASSERT_GE(::fputs("z", m_sink.file), 0);  // fills it
    const auto writer = std::make_shared<Fiber>([&] { EXPECT_EQ(::fflush(m_sink.file), 0); });
    IOManager::GetThis()->schedule(writer);
    while (stateOf(*writer) != FiberState::kParked) Fiber::YieldToReady();
    EXPECT_EQ(m_sink.read(4096), text + "z");
    writer->join();
    EXPECT_EQ(BlockingPool::process().threads(), 0u);
  });
}

// A pipe takes a page at once, or nothing. A longer write needs more than one of its readers' calls.
TEST_F(StdioSink, ALongWriteIsReadByAFiberOfTheSameWorker) {
  const std::string text(1 << 20, 'x');
  std::string got;
  inFiber([&] {
    const auto writer =
        std::make_shared<Fiber>([&] { EXPECT_EQ(::fwrite(text.data(), 1, text.size(), m_sink.file), text.size()); });
    IOManager::GetThis()->schedule(writer);
    got = m_sink.read(text.size());
    writer->join();
  });
  EXPECT_TRUE(got == text) << got.size();
}

// Nobody's lines get into those of another, whose call a helper thread makes.
TEST_F(StdioSink, FibersShareAStream) {
  constexpr size_t kFibers = 4, kLines = 20;
  const size_t length = 3 * PIPE_BUF;
  std::string got;
  inFiber([&] {
    std::vector<Fiber::ptr> writers;
    for (size_t i = 0; i < kFibers; ++i) {
      writers.push_back(std::make_shared<Fiber>([&, i] {
        const std::string line = std::string(length - 1, static_cast<char>('a' + i)) + "\n";
        for (size_t n = 0; n < kLines; ++n) EXPECT_EQ(::fwrite(line.data(), 1, length, m_sink.file), length);
      }));
      IOManager::GetThis()->schedule(writers.back());
    }
    const auto closer = std::make_shared<Fiber>([&] {
      for (const auto& writer : writers) writer->join();
      m_sink.close();
    });
    IOManager::GetThis()->schedule(closer);
    got = m_sink.read(kFibers * kLines * length);
    closer->join();
  });
  ASSERT_EQ(got.size(), kFibers * kLines * length);
  std::vector<size_t> lines(kFibers);
  for (size_t at = 0; at < got.size(); at += length) {
    ASSERT_EQ(got.find_first_not_of(got[at], at), at + length - 1) << at;
    ASSERT_EQ(got[at + length - 1], '\n');
    ++lines[static_cast<size_t>(got[at] - 'a')];
  }
  EXPECT_EQ(lines, std::vector<size_t>(kFibers, kLines));
}

// A terminal may take less at once than it seems, so a helper thread writes there.
TEST_F(StdioSink, ALineToAFullTerminalSuspendsTheFiberOnly) {
  Owned owned;
  const Ends ends = makeTerminal(owned, true);
  Sink sink({::dup(ends[1]), ::dup(ends[0])});
  sink.fill();
  const std::string line(10'000, 'x');
  inFiber([&] {
    const auto writer = std::make_shared<Fiber>([&] { EXPECT_EQ(::fprintf(sink.file, "%s\n", line.c_str()), 10'001); });
    IOManager::GetThis()->schedule(writer);
    while (stateOf(*writer) != FiberState::kParked) Fiber::YieldToReady();
    EXPECT_EQ(sink.read(10'001), line + "\n");
    writer->join();
  });
}

// A close writes what the stream has.
TEST_F(StdioSink, ACloseSuspendsTheFiberOnly) {
  ASSERT_GE(::fputs("last words", m_sink.file), 0);
  m_sink.fill();
  inFiber([&] {
    const auto closer = std::make_shared<Fiber>([&] { m_sink.close(); });
    IOManager::GetThis()->schedule(closer);
    while (stateOf(*closer) != FiberState::kParked) Fiber::YieldToReady();
    EXPECT_EQ(m_sink.read(10), "last words");
    closer->join();
  });
}

TEST_F(StdioSink, ACancelEndsTheWait) {
  m_sink.fill();
  int error = 0;
  bool failed = false;
  inFiber([&] {
    const auto writer = std::make_shared<Fiber>([&] {
      ::fputs("refused", m_sink.file);
      failed = ::fflush(m_sink.file) == EOF && ::ferror(m_sink.file) != 0;
      error = errno;
    });
    IOManager::GetThis()->schedule(writer);
    while (stateOf(*writer) != FiberState::kParked) Fiber::YieldToReady();
    writer->cancel();
    writer->join();
  });
  EXPECT_TRUE(failed);
  EXPECT_EQ(error, ECANCELED);
}

// The reader's end is told as libc tells it.
TEST_F(StdioSink, AReaderThatGoesEndsTheWait) {
  m_sink.fill();
  int error = 0;
  ::signal(SIGPIPE, SIG_IGN);
  inFiber([&] {
    const auto writer = std::make_shared<Fiber>([&] {
      ::fputs("for nobody", m_sink.file);
      EXPECT_EQ(::fflush(m_sink.file), EOF);
      error = errno;
    });
    IOManager::GetThis()->schedule(writer);
    while (stateOf(*writer) != FiberState::kParked) Fiber::YieldToReady();
    m_sink.endReading();
    writer->join();
  });
  ::signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(error, EPIPE);
}

// The same by a signal, also if a helper thread was told.
TEST_F(StdioSink, AReaderThatGoesSendsASignalToTheWriter) {
  static std::atomic<int> signals{0};
  static std::atomic<pid_t> of{0};
  signals = 0;
  ::signal(SIGPIPE, [](int) { ++signals, of = ::gettid(); });
  const std::string text(1 << 20, 'x');
  inFiber([&] {
    pid_t writers = 0;
    const auto writer = std::make_shared<Fiber>([&] {
      writers = ::gettid();
      EXPECT_LT(::fwrite(text.data(), 1, text.size(), m_sink.file), text.size());
      EXPECT_EQ(errno, EPIPE);
    });
    IOManager::GetThis()->schedule(writer);
    EXPECT_EQ(m_sink.read(100).size(), 100u);
    m_sink.endReading();
    writer->join();
    EXPECT_EQ(signals, 1);
    EXPECT_EQ(of, writers);
    EXPECT_EQ(::fputs("again", m_sink.file), 1);  // what it has pending fails at once, and so does this
    EXPECT_EQ(::fflush(m_sink.file), EOF);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(signals, 2);
  });
  ::signal(SIGPIPE, SIG_DFL);
}

// A peer that reads no more, and a timeout of the socket, end the wait as that of a write.
TEST(StdioSocket, TheWaitIsThatOfAWrite) {
  for (const bool times_out : {false, true}) {
    const Ends ends = socketEnds();
    const int reader = ends[0];
    Sink sink({::dup(reader), ends[1]}, _IONBF);
    const timeval soon{0, 1000};
    ASSERT_TRUE(!times_out || ::setsockopt(ends[1], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon) == 0);
    sink.fill();
    ::signal(SIGPIPE, SIG_IGN);
    int error = 0;
    inFiber([&] {
      const auto writer = std::make_shared<Fiber>([&] {
        EXPECT_EQ(::fputs("for nobody", sink.file), EOF);
        error = errno;
        EXPECT_NE(::ferror(sink.file), 0);
      });
      IOManager::GetThis()->schedule(writer);
      while (stateOf(*writer) != FiberState::kParked) Fiber::YieldToReady();
      EXPECT_TRUE(times_out || ::shutdown(reader, SHUT_RD) == 0);
      writer->join();
    });
    ::signal(SIGPIPE, SIG_DFL);
    EXPECT_EQ(error, times_out ? EAGAIN : EPIPE);
    EXPECT_EQ(::close(reader), 0);
  }
}

// libc leaves the number of a stream in memory as it finds it.
TEST_F(StdioSink, AStreamInMemoryHasNoDescriptor) {
  m_sink.fill();
  inFiber([&] {
    char* text = nullptr;
    size_t size = 0;
    FILE* const memory = ::open_memstream(&text, &size);
    memory->_fileno = ::fileno(m_sink.file);
    EXPECT_GE(::fputs("kept", memory), 0);
    EXPECT_EQ(::fclose(memory), 0);
    EXPECT_EQ(lineOf(text, static_cast<ssize_t>(size)), "kept");
  });
}

TEST_F(StdioSink, WhatCannotBeWrittenNeedsNoPipe) {
  Sink unbuffered(pipeEnds(), _IONBF);
  unbuffered.fill();
  const Stream read_only(pipeEnds());
  inFiber([&] {
    EXPECT_GE(::fputs("", unbuffered.file), 0);
    EXPECT_EQ(::fputs("refused", read_only.file), EOF);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(::fgetc(unbuffered.file), EOF);
    EXPECT_EQ(errno, EBADF);
  });
}

// What was read may lie where the text would go.
TEST(StdioSocket, AStreamThatHasReadMayHaveLessRoom) {
  const Ends ends = socketEnds();
  Sink sink({ends[0], ::dup(ends[1])});
  FILE* const both = ::fdopen(ends[1], "r+");
  ASSERT_EQ(libcCalls().write(ends[0], "request", 7), 7);
  const std::string answer(4092, 'a');
  inFiber([&] {
    char request[7];
    EXPECT_EQ(::fread(request, 1, 7, both), 7u);
    sink.fill();
    const auto writer = std::make_shared<Fiber>([&] {
      EXPECT_GE(::fputs(answer.c_str(), both), 0);
      EXPECT_EQ(::fflush(both), 0);
    });
    IOManager::GetThis()->schedule(writer);
    while (stateOf(*writer) != FiberState::kParked) Fiber::YieldToReady();
    EXPECT_EQ(sink.read(answer.size()), answer);
    writer->join();
    EXPECT_EQ(::fclose(both), 0);
  });
}

// Before it waits for input, libc writes what the stream has, and the prompt.
TEST_F(StdioSink, AReadFirstWritesThePromptAndTheRequest) {
  Sink prompts(pipeEnds(), _IOLBF);
  const Stream terminal(pipeEnds());
  ASSERT_EQ(::setvbuf(terminal.file, nullptr, _IONBF, 0), 0);
  const Ends ends = socketEnds();
  FILE* const peer = ::fdopen(ends[0], "r+");
  inFiber([&] {
    asStdout(prompts.file, [&] {
      const auto asks = std::make_shared<Fiber>([&] {
        EXPECT_GE(std::printf("Name: "), 0);
        EXPECT_EQ(::fgetc(terminal.file), 'n');
      });
      IOManager::GetThis()->schedule(asks);
      EXPECT_EQ(prompts.read(6), "Name: ");
      terminal.send("n");
      asks->join();
    });
    const auto client = std::make_shared<Fiber>([&] {
      EXPECT_GE(::fprintf(peer, "GET %d", 1), 0);
      EXPECT_EQ(::fgetc(peer), 'x');
    });
    IOManager::GetThis()->schedule(client);
    char request[5];
    EXPECT_EQ(::read(ends[1], request, 5), 5);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    client->join();
  });
  ::fclose(peer);
  ::close(ends[1]);
}

// A helper thread prints as the caller's thread does.
TEST_F(StdioSink, AHelperThreadPrintsInTheCallersLocale) {
  const locale_t comma = ::newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
  ASSERT_NE(comma, nullptr);
  std::string got;
  inFiber([&] {
    const auto writer = std::make_shared<Fiber>([&] {
      const locale_t before = ::uselocale(comma);
      EXPECT_GT(::fprintf(m_sink.file, "%20000d%ls", 1, L"\u00e9"), 0);
      ::uselocale(before);
    });
    IOManager::GetThis()->schedule(writer);
    got = m_sink.read(16'384);
    writer->join();
    EXPECT_EQ(::fflush(m_sink.file), 0);
    got = m_sink.read(20'002 - 16'384);
  });
  ::freelocale(comma);
  EXPECT_EQ(got.substr(got.size() - 3), "1\xc3\xa9");
}

// A helper thread would wait for the lock without end.
TEST_F(StdioSink, AStreamThatTheCallerHasLockedIsWrittenOnTheSpot) {
  inFiber([&] {
    ::flockfile(m_sink.file);
    EXPECT_GE(::fputs("locked", m_sink.file), 0);
    EXPECT_EQ(::fflush(m_sink.file), 0);
    ::funlockfile(m_sink.file);
    EXPECT_EQ(m_sink.read(6), "locked");
    EXPECT_EQ(BlockingPool::process().threads(), 0u);
  });
}

// A file never waits.
TEST_F(StdioSink, FilesAreWrittenOnTheSpot) {
  inFiber([&] {
    FILE* const file = ::tmpfile();
    ASSERT_NE(file, nullptr);
    const std::string text(1 << 20, 'x');
    EXPECT_EQ(::fwrite(text.data(), 1, text.size(), file), text.size());
    EXPECT_EQ(::ftell(file), 1 << 20);
    ::fclose(file);
    EXPECT_EQ(BlockingPool::process().threads(), 0u);
  });
}

}  // namespace
}  // namespace sylar::test
