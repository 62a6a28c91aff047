#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "sylar/log/log_writer.h"
#include "tests/log/directory.h"

namespace sylar {
namespace {

// A device that takes no more: a FIFO that nobody reads, once it is full.
class StuckWriter : public testing::Test {
 protected:
  static constexpr size_t kQueue = 10'000;
  static constexpr size_t kPipe = 65'536;

  StuckWriter() {
    EXPECT_EQ(::mkfifo(m_path.c_str(), 0600), 0);
    m_reader = ::open(m_path.c_str(), O_RDONLY | O_NONBLOCK);
    m_writer = LogWriter::toFile(m_path, {}, kQueue);
  }
  ~StuckWriter() override { ::close(m_reader); }

  /// Afterwards the writer's thread waits for the device, with nothing in the queue.
  void fill() {
    m_writer->append(std::string(kPipe, '.') + "\n");
    while (readable() < kPipe) sched_yield();
  }
  size_t readable() const {
    int size = 0;
    EXPECT_EQ(::ioctl(m_reader, FIONREAD, &size), 0);
    return static_cast<size_t>(size);
  }
  /// All that comes until the writer has written what it has.
  std::string readAll() {
    std::string all;
    const auto read = [&] {
      char part[4096];
      for (ssize_t size; (size = ::read(m_reader, part, sizeof part)) > 0;) all.append(part, static_cast<size_t>(size));
    };
    while (!m_writer->flush(Deadline::after(std::chrono::milliseconds(1)))) read();
    read();
    return all;
  }

  const test::Directory m_directory;
  const std::string m_path = m_directory / "fifo";
  int m_reader = -1;
  std::shared_ptr<LogWriter> m_writer;
};

// FM-36, CD-L3
TEST_F(StuckWriter, FullQueueDropsCountsAndTells) {
  fill();
  const std::string line(99, 'x');
  int appended = 0;
  for (; m_writer->lost() < 50; ++appended) m_writer->append(line + "\n");
  EXPECT_LE(static_cast<size_t>(appended - 50) * 100, kQueue);
  const std::string all = readAll();
  std::string wanted = std::string(kPipe, '.') + "\n";
  for (int i = 0; i < appended - 50; ++i) wanted += line + "\n";
  EXPECT_EQ(all, wanted + "log: 50 lines were dropped here, the queue was full\n");
  m_writer->append("again\n");
  EXPECT_EQ(readAll(), "again\n");
  EXPECT_EQ(m_writer->lost(), 50u);
}

TEST_F(StuckWriter, LineThatIsLargerThanTheQueueIsTakenAlone) {
  const std::string line = std::string(2 * kQueue, 'x') + "\n";
  m_writer->append(line);
  EXPECT_EQ(readAll(), line);
  EXPECT_EQ(m_writer->lost(), 0u);
}

TEST_F(StuckWriter, FlushGivesUpAtItsDeadline) {
  EXPECT_TRUE(m_writer->flush(Deadline::at(0)));  // nothing to wait for
  fill();
  EXPECT_FALSE(m_writer->flush(Deadline::after(std::chrono::milliseconds(1))));
  EXPECT_FALSE(LogWriter::flushAll(Deadline::after(std::chrono::milliseconds(1))));
  readAll();
  EXPECT_TRUE(m_writer->flush(Deadline::never()));
}

// FM-36: the last handle may be that of a thread that logs.
TEST_F(StuckWriter, LastHandleWaitsForNoDevice) {
  fill();
  m_writer->append("one\n");
  const LogWriter* const writer = m_writer.get();
  m_writer.reset();
  EXPECT_FALSE(LogWriter::flushAll(Deadline::after(std::chrono::milliseconds(1))));  // it is still known
  m_writer = LogWriter::toFile(m_path);
  EXPECT_EQ(m_writer.get(), writer);
  m_writer->append("two\n");
  EXPECT_EQ(readAll(), std::string(kPipe, '.') + "\none\ntwo\n");
}

// A reader that goes away is an error to count, and no SIGPIPE.
TEST_F(StuckWriter, ReaderThatGoesAwayKillsNobody) {
  testing::internal::CaptureStderr();
  m_writer->append("one\n");
  EXPECT_EQ(readAll(), "one\n");
  ::close(m_reader);
  m_writer->append("two\n");
  EXPECT_TRUE(m_writer->flush(Deadline::never()));
  EXPECT_EQ(m_writer->lost(), 1u);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot write: Broken pipe"), std::string::npos);
  m_reader = ::open(m_path.c_str(), O_RDONLY | O_NONBLOCK);
  m_writer->append("three\n");
  EXPECT_EQ(readAll(), "three\n");
}

TEST(LogWriterTest, WriterOfAPathIsSharedWhileItIsUsed) {
  const test::Directory directory;
  const auto one = LogWriter::toFile(directory / "x");
  EXPECT_EQ(LogWriter::toFile(directory / "./x"), one);
  EXPECT_EQ(LogWriter::toFile(directory / "x", {.bytes = 1}), one);
  EXPECT_NE(LogWriter::toFile(directory / "y"), one);
  EXPECT_EQ(LogWriter::toStdout(), LogWriter::toStdout());
}

}  // namespace
}  // namespace sylar
