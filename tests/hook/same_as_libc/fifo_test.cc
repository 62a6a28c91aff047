// Hooked against raw: FIFOs opened by name, where poll does not tell everything.
#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

/// Both ends, made by the run's own functions; the reading one perhaps alone.
struct Fifo {
  explicit Fifo(bool with_writer) {
    const std::string name = owned.file();
    ::unlink(name.c_str());
    EXPECT_EQ(::mkfifo(name.c_str(), 0600), 0);
    reader = owned.keep(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (with_writer) writer = owned.keep(::open(name.c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_EQ(::fcntl(reader, F_SETFL, 0), 0);  // the usual way round an open that waits
  }
  Owned owned;
  int reader = -1;
  int writer = -1;
};

void withoutAWriter(Run& run) {
  const Fifo fifo(false);
  char buffer[8];
  iovec part{buffer, sizeof buffer};
  run.got("read", run.call.read(fifo.reader, buffer, sizeof buffer));
  run.got("readv", run.call.readv(fifo.reader, &part, 1));
}

void whoseWriterGoes(Run& run) {
  const Fifo fifo(true);
  char buffer[8];
  iovec part{buffer, sizeof buffer};
  run.later([&](const Calls& libc) {
    libc.write(fifo.writer, "abc", 3);
    libc.dup2(fifo.reader, fifo.writer);
  });
  run.got("read", run.call.read(fifo.reader, buffer, 3));
  run.got("read", run.call.read(fifo.reader, buffer, sizeof buffer));
  run.got("readv", run.call.readv(fifo.reader, &part, 1));
}

/// 64 KiB in pieces that share pages.
void takesAllItHasRoomFor(Run& run) {
  const size_t sizes[] = {1024, 100, 3000, 4096, 5000};
  for (const size_t size : sizes) {
    for (const bool by_parts : {false, true}) {
      const Fifo libcs(true);
      const Fifo ours(true);
      const std::vector<char> bytes(size, 'x');
      const iovec parts[] = {{const_cast<char*>(bytes.data()), size / 3}, {const_cast<char*>(bytes.data()), size - size / 3}};
      EXPECT_EQ(libcCalls().fcntl(libcs.writer, F_SETFL, O_NONBLOCK), 0);
      int whole = 0;
      while (libcCalls().write(libcs.writer, bytes.data(), size) == static_cast<ssize_t>(size)) ++whole;
      ssize_t written = 0;
      for (int i = 0; i < whole; ++i) {
        written += by_parts ? run.call.writev(ours.writer, parts, 2) : run.call.write(ours.writer, bytes.data(), size);
      }
      run.got("written", written);
      int waiting = 0;
      run.call.ioctl(ours.reader, FIONREAD, &waiting);
      run.got("waiting", waiting);
    }
  }
}

void whoseReaderGoes(Run& run) {
  const Fifo fifo(true);
  const std::vector<char> bytes(200'000, 'x');
  run.later([&](const Calls& libc) {
    for (int there = 0; there == 0 && ::ioctl(fifo.reader, FIONREAD, &there) == 0;) sched_yield();  // the write has begun
    libc.dup2(STDERR_FILENO, fifo.reader);
  });
  run.got("write", run.call.write(fifo.writer, bytes.data(), bytes.size()) > 0);
  run.join();
  run.noteSignals();
  run.got("write", run.call.write(fifo.writer, bytes.data(), 1));
}

void carriesAStream(Run& run) {
  const Fifo fifo(true);
  constexpr size_t kSize = 3'000'001;
  const std::vector<char> bytes = streamBytes(kSize);
  std::vector<char> got(kSize);
  run.later([&](const Calls& libc) {
    for (size_t done = 0; done < kSize;) {
      const ssize_t n = libc.read(fifo.reader, got.data() + done, 777);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
  });
  run.got("write", run.call.write(fifo.writer, bytes.data(), bytes.size()));
  run.join();
  EXPECT_EQ(got, bytes);
}

std::vector<Case> cases() {
  return {
      {"WithoutAWriter", withoutAWriter},   {"WhoseWriterGoes", whoseWriterGoes}, {"TakesAllItHasRoomFor", takesAllItHasRoomFor},
      {"WhoseReaderGoes", whoseReaderGoes}, {"CarriesAStream", carriesAStream},
  };
}

class FifoTest : public SameAsLibc {};

// HA-5
TEST_P(FifoTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, FifoTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
