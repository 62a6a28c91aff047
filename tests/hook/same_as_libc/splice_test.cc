// Hooked against raw: sendfile, splice, tee, vmsplice, copy_file_range, preadv2, pwritev2.
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

Ends makeUnixStream(const Calls& calls) { return makeUnix(calls, SOCK_STREAM); }

/// A file without a name that holds the first `size` bytes of the stream.
int makeFile(Run& run, size_t size, int flags = O_RDWR) {
  char name[] = "/tmp/sylar_test_XXXXXX";
  const int made = libcCalls().fcntl(::mkstemp(name), F_DUPFD, 3);
  const std::vector<char> bytes = streamBytes(size);
  EXPECT_EQ(libcCalls().write(made, bytes.data(), size), ssize_t(size));
  const int fd = run.keep(::open(name, flags));
  ::unlink(name);
  libcCalls().close(made);
  return fd;
}

/// Writes down how many bytes are there, and whether they are those of the stream from `first` on.
void take(Run& run, int fd, size_t size, size_t first = 0) {
  std::vector<char> got(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t n = libcCalls().read(fd, got.data() + done, size - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  bool same = true;
  for (size_t i = 0; i < done; ++i) same = same && got[i] == streamByte(first + i);
  run.note("took", std::to_string(done) + (same ? " right" : " wrong"));
}

void notePosition(Run& run, int file) { run.note("position", std::to_string(::lseek(file, 0, SEEK_CUR))); }

void fill(int fd) {
  const int flags = libcCalls().fcntl(fd, F_GETFL);
  libcCalls().fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const char page[4096] = {};
  while (libcCalls().write(fd, page, sizeof page) > 0) continue;
  libcCalls().fcntl(fd, F_SETFL, flags);
}

/// Sends from a file to a full socket. TCP finds room for a little more from time to time.
ssize_t sendfileMore(const Run& run, int out, int file) {
  ssize_t n;
  do {
    ::lseek(file, 0, SEEK_SET);
    n = run.call.sendfile(out, file, nullptr, 1000);
  } while (n > 0);
  return n;
}

std::vector<Case> sendfileCases() {
  std::vector<Case> cases;
  for (const auto& [name, make] : {std::pair{"Tcp", &makeTcp}, {"UnixStream", &makeUnixStream}}) {
    const auto add = [&cases, name = name, make = make](const std::string& what, std::function<void(Run&, const Ends&)> body) {
      cases.push_back({"Sendfile" + std::string(name) + what, [=](Run& run) { body(run, run.keep(make(run.make))); }});
    };
    add("Whole", [](Run& run, const Ends& ends) {
      const int file = makeFile(run, 3'000'000);
      std::thread reader([&] { take(run, ends[0], 3'000'000); });
      const ssize_t sent = run.call.sendfile(ends[1], file, nullptr, 3'000'000);
      reader.join();
      run.got("sendfile", sent);
      notePosition(run, file);
    });
    add("PastTheEndOfTheFile", [](Run& run, const Ends& ends) {
      const int file = makeFile(run, 1000);
      off_t offset = 400;
      run.got("sendfile", run.call.sendfile(ends[1], file, &offset, 5000));
      run.note("offset", std::to_string(offset));
      run.got("sendfile", run.call.sendfile(ends[1], file, &offset, 5000));
      notePosition(run, file);
      take(run, ends[0], 600, 400);
    });
    add("SendTimeout", [](Run& run, const Ends& ends) {
      const int file = makeFile(run, 1000);
      setTimeout(run.call, ends[1], SO_SNDTIMEO, 3'000);
      fill(ends[1]);
      run.got("sendfile", sendfileMore(run, ends[1], file));
    });
    add("Nonblocking", [](Run& run, const Ends& ends) {
      const int file = makeFile(run, 1000);
      fill(ends[1]);
      run.got("fcntl", run.call.fcntl(ends[1], F_SETFL, O_NONBLOCK));
      run.got("sendfile", sendfileMore(run, ends[1], file));
    });
    add("Refusals", [](Run& run, const Ends& ends) {
      const int file = makeFile(run, 1000);
      const int writable = makeFile(run, 10, O_WRONLY);
      const Ends pipe = run.keep(makePipe(run.make));
      run.got("bad offset", run.call.sendfile(ends[1], file, static_cast<off_t*>(badPointer()), 10));
      run.got("nothing", run.call.sendfile(ends[1], file, nullptr, 0));
      run.got("no in", run.call.sendfile(ends[1], -1, nullptr, 10));
      run.got("no out", run.call.sendfile(-1, file, nullptr, 10));
      run.got("in is for writing", run.call.sendfile(ends[1], writable, nullptr, 10));
      run.got("out is for reading", run.call.sendfile(pipe[0], file, nullptr, 10));
      run.got("in is a pipe", run.call.sendfile(ends[1], pipe[0], nullptr, 10));
      run.got("in is a pipe, out is one", run.call.sendfile(pipe[1], pipe[0], nullptr, 10));
      run.got("in is a socket", run.call.sendfile(ends[1], ends[0], nullptr, 10));
    });
    add("Gone", [](Run& run, const Ends& ends) {
      const int file = makeFile(run, 1000);
      resetOnClose(ends[0]);
      run.close(ends[0]);
      for (int i = 0; i < 3; ++i) run.got("sendfile", run.call.sendfile(ends[1], file, nullptr, 10));
      run.noteSignals();
    });
  }
  cases.push_back({"SendfileToAPipe", [](Run& run) {
                     const Ends pipe = run.keep(makePipe(run.make));
                     const int file = makeFile(run, 1'000'000);
                     run.got("as much as fits", run.call.sendfile(pipe[1], file, nullptr, 1'000'000));
                     notePosition(run, file);
                     run.later([=](const Calls& call) {
                       char page[4096];
                       EXPECT_EQ(call.read(pipe[0], page, sizeof page), 4096);
                     });
                     off_t offset = 10;
                     run.got("one more page", run.call.sendfile(pipe[1], file, &offset, 1'000'000));
                     run.note("offset", std::to_string(offset));
                     run.close(pipe[0]);
                     run.got("nobody reads", run.call.sendfile(pipe[1], file, &offset, 1'000'000));
                     run.noteSignals();
                   }});
  cases.push_back({"SendfileToAFile", [](Run& run) {
                     const int from = makeFile(run, 100'000), to = makeFile(run, 0);
                     run.got("sendfile", run.call.sendfile(to, from, nullptr, 200'000));
                     run.got("at the end", run.call.sendfile(to, from, nullptr, 200'000));
                     ::lseek(to, 0, SEEK_SET);
                     take(run, to, 200'000);
                   }});
  cases.push_back({"CopyFileRange", [](Run& run) {
                     const int from = makeFile(run, 100'000), to = makeFile(run, 0);
                     off64_t offset = 1000;
                     run.got("copy", run.call.copy_file_range(from, &offset, to, nullptr, 200'000, 0));
                     run.note("offset", std::to_string(offset));
                     run.got("flags", run.call.copy_file_range(from, &offset, to, nullptr, 10, 99));
                     run.got("no file", run.call.copy_file_range(-1, &offset, to, nullptr, 10, 0));
                     ::lseek(to, 0, SEEK_SET);
                     take(run, to, 200'000, 1000);
                   }});
  return cases;
}

std::vector<Case> spliceCases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, std::function<void(Run&)> body) { cases.push_back({name, std::move(body)}); };
  for (const unsigned flags : {0u, unsigned{SPLICE_F_NONBLOCK}}) {
    const std::string suffix = flags == 0 ? "" : "Nonblock";
    add("SplicePipeToPipe" + suffix, [=](Run& run) {
      const Ends from = run.keep(makePipe(run.make)), to = run.keep(makePipe(run.make));
      if (flags != 0) run.got("empty", run.call.splice(from[0], nullptr, to[1], nullptr, 10, flags));
      libcCalls().write(from[1], "hello", 5);
      run.got("splice", run.call.splice(from[0], nullptr, to[1], nullptr, 3, flags));
      run.got("the rest", run.call.splice(from[0], nullptr, to[1], nullptr, 10, flags));
      fill(to[1]);
      libcCalls().write(from[1], "hello", 5);
      if (flags != 0) run.got("full", run.call.splice(from[0], nullptr, to[1], nullptr, 10, flags));
      if (flags != 0) run.got("tee to a full one", run.call.tee(from[0], to[1], 10, flags));
      run.close(to[0]);
      run.got("nobody reads", run.call.splice(from[0], nullptr, to[1], nullptr, 10, flags));
      run.noteSignals();
    });
    add("SpliceAtTheEnd" + suffix, [=](Run& run) {
      const Ends from = run.keep(makePipe(run.make)), to = run.keep(makePipe(run.make));
      run.close(from[1]);
      run.got("splice", run.call.splice(from[0], nullptr, to[1], nullptr, 10, flags));
      run.got("tee", run.call.tee(from[0], to[1], 10, flags));
      char byte;
      const iovec part{&byte, 1};
      run.got("vmsplice", run.call.vmsplice(from[0], &part, 1, flags));
      const Ends socket = run.keep(makeTcp(run.make));
      run.got("to a socket", run.call.splice(from[0], nullptr, socket[1], nullptr, 10, flags));
      run.close(socket[0]);
      run.got("from a socket", run.call.splice(socket[1], nullptr, to[1], nullptr, 10, flags));
    });
    add("SpliceFileToPipe" + suffix, [=](Run& run) {
      const Ends pipe = run.keep(makePipe(run.make));
      const int file = makeFile(run, 10'000);
      off64_t offset = 5'000;
      run.got("splice", run.call.splice(file, &offset, pipe[1], nullptr, 2'000, flags));
      run.note("offset", std::to_string(offset));
      run.got("at its position", run.call.splice(file, nullptr, pipe[1], nullptr, 100, flags));
      notePosition(run, file);
      take(run, pipe[0], 2'000, 5'000);
      offset = 20'000;
      run.got("past its end", run.call.splice(file, &offset, pipe[1], nullptr, 100, flags));
      const int copy = makeFile(run, 0);
      run.got("to a file", run.call.splice(pipe[0], nullptr, copy, nullptr, 1000, flags));
      ::lseek(copy, 0, SEEK_SET);
      take(run, copy, 1000);
    });
    add("SpliceUnixToPipe" + suffix, [=](Run& run) {
      const Ends socket = run.keep(makeUnix(run.make, SOCK_STREAM)), pipe = run.keep(makePipe(run.make));
      if (flags != 0) run.got("empty", run.call.splice(socket[0], nullptr, pipe[1], nullptr, 10, flags));
      libcCalls().write(socket[1], "hello", 5);
      run.got("splice", run.call.splice(socket[0], nullptr, pipe[1], nullptr, 10, flags));
      run.got("to it", run.call.splice(pipe[0], nullptr, socket[0], nullptr, 10, flags));
    });
    add("SpliceUpToAMark" + suffix, [=](Run& run) {
      const Ends socket = run.keep(makeUnix(run.make, SOCK_STREAM)), pipe = run.keep(makePipe(run.make));
      const int mark = 8;
      EXPECT_EQ(run.make.setsockopt(socket[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark), 0);
      libcCalls().write(socket[1], "hello", 5);
      if (flags == 0) run.whileItWaits([=](const Calls& libc) { libc.write(socket[1], ", world", 7); });
      run.got("splice", run.call.splice(socket[0], nullptr, pipe[1], nullptr, 100, flags));
    });
    add("SpliceOnlyWhatIsInThePipe" + suffix, [=](Run& run) {
      const Ends socket = run.keep(makeUnix(run.make, SOCK_STREAM)), pipe = run.keep(makePipe(run.make));
      setBuffer(socket[0], SO_SNDBUF, 4608);
      const std::vector<char> bytes = streamBytes(60'000);
      libcCalls().write(pipe[1], bytes.data(), bytes.size());
      std::thread reader([&] { take(run, socket[1], bytes.size()); });
      const ssize_t sent = run.call.splice(pipe[0], nullptr, socket[0], nullptr, 1 << 20, flags);
      reader.join();
      run.got("splice", sent);
    });
  }
  add("SpliceFromANonblockingPipe", [](Run& run) {
    const Ends socket = run.keep(makeTcp(run.make)), pipe = run.keep(makePipe(run.make));
    run.got("fcntl", run.call.fcntl(pipe[0], F_SETFL, O_NONBLOCK));
    run.got("splice", run.call.splice(pipe[0], nullptr, socket[0], nullptr, 10, 0));
    const Ends to = run.keep(makePipe(run.make));
    run.got("to a pipe", run.call.splice(pipe[0], nullptr, to[1], nullptr, 10, 0));
    run.got("tee", run.call.tee(pipe[0], to[1], 10, 0));
  });
  add("SpliceRefusals", [](Run& run) {
    const Ends pipe = run.keep(makePipe(run.make)), other = run.keep(makePipe(run.make)), socket = run.keep(makeTcp(run.make));
    const int file = makeFile(run, 100);
    off64_t offset = 0;
    run.got("the same pipe", run.call.splice(pipe[0], nullptr, pipe[1], nullptr, 10, 0));
    run.got("tee to the same pipe", run.call.tee(pipe[0], pipe[1], 10, 0));
    run.got("no pipe", run.call.splice(socket[0], nullptr, socket[1], nullptr, 10, 0));
    run.got("tee of no pipe", run.call.tee(socket[0], pipe[1], 10, 0));
    run.got("flags", run.call.splice(pipe[0], nullptr, other[1], nullptr, 10, 0x80));
    run.got("offset of a pipe", run.call.splice(pipe[0], &offset, other[1], nullptr, 10, 0));
    run.got("offset of a socket", run.call.splice(socket[0], &offset, other[1], nullptr, 10, 0));
    run.got("bad offset", run.call.splice(file, static_cast<off64_t*>(badPointer()), other[1], nullptr, 10, 0));
    run.got("ends swapped", run.call.splice(pipe[1], nullptr, other[0], nullptr, 10, 0));
    run.got("to the end that reads", run.call.splice(socket[0], nullptr, other[0], nullptr, 10, 0));
    run.got("from the end that writes", run.call.splice(other[1], nullptr, socket[0], nullptr, 10, 0));
    run.got("nothing", run.call.splice(pipe[0], nullptr, other[1], nullptr, 0, 0));
    run.got("no descriptor", run.call.splice(-1, nullptr, other[1], nullptr, 10, 0));
    run.got("nothing to tee", run.call.tee(pipe[0], other[1], 0, 0));
    run.got("vmsplice of nothing", run.call.vmsplice(pipe[1], nullptr, 0, 0));
    run.got("vmsplice of a bad vector", run.call.vmsplice(pipe[1], static_cast<iovec*>(badPointer()), 1, 0));
    run.got("vmsplice to a socket", run.call.vmsplice(socket[0], nullptr, 0, 0));
  });
  add("VectorsWithOffset", [](Run& run) {
    const Ends pipe = run.keep(makePipe(run.make)), socket = run.keep(makeTcp(run.make));
    char bytes[4] = "abc";
    const iovec part{bytes, 3};
    for (const int fd : {pipe[0], socket[0]}) {
      run.got("offset", run.call.preadv2(fd, &part, 1, 0, 0));
      run.got("RWF_NOWAIT", run.call.preadv2(fd, &part, 1, -1, RWF_NOWAIT));
      run.got("flags", run.call.preadv2(fd, &part, 1, -1, 0x4000));
    }
    run.got("write", run.call.pwritev2(pipe[1], &part, 1, -1, 0));
    run.got("read", run.call.preadv2(pipe[0], &part, 1, -1, 0));
    run.got("offset", run.call.pwritev2(pipe[1], &part, 1, 0, 0));
    const int file = makeFile(run, 100);
    run.got("file", run.call.preadv2(file, &part, 1, 50, 0));
    run.note("right", bytes[0] == streamByte(50) ? "yes" : "no");
    run.got("file", run.call.pwritev2(file, &part, 1, -1, 0));
    notePosition(run, file);
  });
  return cases;
}

/// What the kernel refuses at once. Cause: the hooks waited for it, without end.
void refusedEnds(Run& run) {
  const int file = makeFile(run, 4096);
  const Ends pipe = run.keep(makePipe(libcCalls()));
  EXPECT_EQ(libcCalls().write(pipe[1], "abc", 3), 3);
  const int full = ::eventfd(0, EFD_CLOEXEC);
  const uint64_t most = ~uint64_t{0} - 1;
  EXPECT_EQ(libcCalls().write(full, &most, sizeof most), ssize_t(sizeof most));
  const std::pair<const char*, int> ends[] = {{"timerfd", ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)},
                                              {"inotify", ::inotify_init1(IN_CLOEXEC)},
                                              {"epoll", ::epoll_create1(EPOLL_CLOEXEC)},
                                              {"full eventfd", full}};
  for (const auto& [name, fd] : ends) {
    run.keep(fd);
    run.note("an end", name);
    run.got("from a pipe", run.call.splice(pipe[0], nullptr, fd, nullptr, 3, 0));
    run.got("from a file", run.call.sendfile(fd, file, nullptr, 100));
    if (fd == full) continue;
    run.got("to a pipe", run.call.splice(fd, nullptr, pipe[1], nullptr, 3, 0));
    run.got("to a pipe", run.call.sendfile(pipe[1], fd, nullptr, 3));
  }
}

std::vector<Case> cases() {
  std::vector<Case> all = sendfileCases();
  std::ranges::move(spliceCases(), std::back_inserter(all));
  all.push_back({"RefusedEnds", refusedEnds});
  return all;
}

class SpliceTest : public SameAsLibc {};

TEST_P(SpliceTest, Splice) { compare(GetParam()); }
TEST_P(SpliceTest, SpliceWithFilesOnTheThreadItself) {
  const FilesMode off(false);
  compare(GetParam());
}
INSTANTIATE_TEST_SUITE_P(SameAsLibc, SpliceTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
