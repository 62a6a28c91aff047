// Hooked against raw: locks of files, opens that may wait, and calls that wait for the disk.
#include <sys/stat.h>

#include <mutex>

#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

/// A file that is open twice.
struct File {
  int open(int flags = O_RDWR) { return owned.keep(libcCalls().open(name.c_str(), flags | O_CLOEXEC)); }
  Owned owned;
  const std::string name = owned.file();
};

struct flock record(short type, off_t begin = 0, off_t size = 0) {
  struct flock one {};
  one.l_type = type;
  one.l_start = begin;
  one.l_len = size;
  return one;
}

void wholeFiles(Run& run) {
  File file;
  const int one = file.open();
  const int two = file.open(O_RDONLY);
  for (const int operation : {LOCK_SH, LOCK_EX, LOCK_EX | LOCK_NB, LOCK_SH, LOCK_UN, 0, 77, LOCK_SH | LOCK_EX}) {
    run.got("flock", run.call.flock(one, operation));
  }
  run.got("shared", run.call.flock(one, LOCK_SH));
  run.got("shared", run.call.flock(two, LOCK_SH));
  run.got("does not wait", run.call.flock(two, LOCK_EX | LOCK_NB));
  run.later([=](const Calls& libc) { libc.flock(one, LOCK_UN); });
  run.got("waits", run.call.flock(two, LOCK_EX));
  run.got("has it", run.call.flock(one, LOCK_SH | LOCK_NB));
  run.got("closed", run.call.flock(999, LOCK_EX));
}

void records(Run& run) {
  File file;
  const int one = file.open();
  const int two = file.open();
  struct flock first = record(F_WRLCK, 10, 10);
  const auto set = [&](const char* what, int fd, int command, struct flock lock) {
    run.got(what, run.call.fcntl(fd, command, &lock));
    run.note("type", std::to_string(lock.l_type) + ' ' + std::to_string(lock.l_pid));
  };
  set("first", one, F_OFD_SETLKW, first);
  set("beside it", two, F_OFD_SETLKW, record(F_WRLCK, 20, 10));
  set("does not wait", two, F_OFD_SETLK, first);
  run.later([=](const Calls& libc) {
    struct flock none = record(F_UNLCK);
    libc.fcntl(one, F_OFD_SETLKW, &none);
  });
  set("waits", two, F_OFD_SETLKW, record(F_RDLCK, 0, 0));
  set("unlock", two, F_OFD_SETLKW, record(F_UNLCK));
  set("own process", one, F_SETLKW, first);
  set("own process", two, F_SETLKW, first);
  set("unlock", two, F_SETLKW, record(F_UNLCK));
  const int reader = file.open(O_RDONLY);
  set("not writable", reader, F_SETLKW, first);
  set("not writable", reader, F_OFD_SETLKW, first);
  set("no type", one, F_SETLKW, record(77));
  set("before the file", one, F_SETLKW, record(F_WRLCK, -10, 5));
  first.l_pid = 1;
  set("with a process", one, F_OFD_SETLKW, first);
  set("closed", 999, F_SETLKW, first);
  run.got("pointer", run.call.fcntl(one, F_SETLKW, badPointer()));
  run.got("pointer", run.call.fcntl(one, F_OFD_SETLKW, badPointer()));
  for (const int command : {F_LOCK, F_TLOCK, F_TEST, F_ULOCK, 77}) {
    run.got("lockf", run.call.lockf(one, command, 5));
    run.got("lockf", run.call.lockf(reader, command, -5));
  }
}

void opens(Run& run) {
  File file;
  const std::string fifo = file.name + ".fifo";
  const std::string link = file.name + ".link";
  EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(::symlink(fifo.c_str(), link.c_str()), 0);
  const auto opened = [&](const std::string& what, int fd) {
    run.note(what, fd >= 0 ? "open " + std::to_string(::fcntl(fd, F_GETFL)) + ' ' + std::to_string(::fcntl(fd, F_GETFD))
                           : ::strerrorname_np(errno));
    return fd >= 0 ? run.keep(fd) : -1;
  };
  opened("missing", run.call.open("/no/such/file", O_RDONLY));
  opened("pointer", run.call.open(static_cast<const char*>(badPointer()), O_RDONLY));
  opened("directory", run.call.open("/", O_RDONLY));
  opened("file", run.call.open(file.name.c_str(), O_RDWR | O_CLOEXEC));
  opened("link", run.call.open(link.c_str(), O_RDONLY | O_NOFOLLOW));
  opened("both sides", run.call.open(fifo.c_str(), O_RDWR));
  opened("a writer and reader is there", run.call.open(fifo.c_str(), O_RDONLY));
  opened("so it does not wait", run.call.open(link.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  opened("exclusive", run.call.open(fifo.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
  opened("created", run.call.creat(fifo.c_str(), 0600));
  opened("relative", run.call.openat(999, "fifo", O_RDONLY));
  const std::string made = file.name + ".new";
  opened("not there", run.call.open(made.c_str(), O_WRONLY));
  opened("made", run.call.open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  opened("there", run.call.open(made.c_str(), O_RDONLY | O_CREAT, 0600));
  opened("below a file", run.call.open((made + "/x").c_str(), O_RDONLY));
  opened("folder not there", run.call.open((file.name + ".none/x").c_str(), O_WRONLY | O_CREAT, 0600));
  opened("folder to be made", run.call.open((file.name + ".none/").c_str(), O_WRONLY | O_CREAT, 0600));
  opened("no name", run.call.open("", O_RDONLY | O_CREAT, 0600));
  opened("long name", run.call.open(std::string(5000, 'x').c_str(), O_WRONLY | O_CREAT, 0600));
  opened("to write a folder", run.call.open("/tmp", O_WRONLY));
  opened("of a folder", run.call.openat(opened("folder", run.call.open("/dev", O_PATH)), "null", O_RDWR | O_TRUNC));
  opened("without a name", run.call.open("/tmp", O_TMPFILE | O_RDWR, 0600));
  ::unlink(made.c_str());
  for (const std::string& name : {fifo, link}) ::unlink(name.c_str());
}

void opensOfAFifo(Run& run) {
  for (const int mine : {O_RDONLY, O_WRONLY}) {
    File file;
    ::unlink(file.name.c_str());
    EXPECT_EQ(::mkfifo(file.name.c_str(), 0600), 0);
    run.got("other side at once", run.call.open(file.name.c_str(), O_WRONLY | O_NONBLOCK));
    run.later([&, mine](const Calls& libc) {
      const int other = libc.open(file.name.c_str(), mine ^ O_WRONLY);
      libc.close(other);
    });
    const int fd = run.keep(run.call.open(file.name.c_str(), mine | O_APPEND));
    run.note("flags", std::to_string(::fcntl(fd, F_GETFL)));
    run.join();
    char byte = 'x';
    run.got("the other side has gone", mine == O_RDONLY ? run.call.read(fd, &byte, 1) : run.call.write(fd, &byte, 1));
    run.noteSignals();
  }
}

/// An open of a pipe's side by its name in /proc never waits.
void opensOfAPipe(Run& run) {
  for (const int side : {0, 1}) {
    const Ends ends = run.keep(makePipe(libcCalls()));
    const std::string name = "/proc/self/fd/" + std::to_string(ends[static_cast<size_t>(side)]);
    run.close(ends[static_cast<size_t>(1 - side)]);
    const int fd = run.keep(run.call.open(name.c_str(), side == 0 ? O_RDONLY : O_WRONLY));
    run.note("open", std::to_string(fd >= 0));
    run.note("flags", std::to_string(::fcntl(fd, F_GETFL)));
  }
  const Ends ends = run.keep(makePipe(libcCalls()));
  const int fd = run.keep(run.call.open(("/proc/self/fd/" + std::to_string(ends[0])).c_str(), O_RDONLY));
  run.note("open", std::to_string(fd >= 0));
}

void disks(Run& run) {
  File file;
  const int fd = file.open();
  const Ends pipe = run.keep(makePipe(libcCalls()));
  EXPECT_EQ(::write(fd, "abc", 3), 3);
  for (const int one : {fd, pipe[0], 999}) {
    run.got("fsync", run.call.fsync(one));
    run.got("fdatasync", run.call.fdatasync(one));
    run.got("syncfs", run.call.syncfs(one));
    run.got("sync_file_range", run.call.sync_file_range(one, 0, 3, SYNC_FILE_RANGE_WRITE));
  }
  run.got("sync_file_range", run.call.sync_file_range(fd, -1, 3, SYNC_FILE_RANGE_WRITE));
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  run.got("msync", run.call.msync(memory, 4096, MS_SYNC));
  run.got("msync", run.call.msync(memory, 4096, MS_SYNC | MS_ASYNC));
  run.got("msync", run.call.msync(static_cast<char*>(memory) + 1, 1, MS_SYNC));
  ::munmap(memory, 4096);
  run.got("msync", run.call.msync(nullptr, 4096, MS_SYNC));
  errno = ENOTTY;
  run.call.sync();
  run.note("errno", std::to_string(errno));
}

/// Reads and writes at the position and at offsets, in and around a file of 10 000 bytes.
void bytesOfFiles(Run& run) {
  constexpr size_t kSize = 10'000;
  File file;
  const int fd = file.open();
  const int reader = file.open(O_RDONLY);
  const int writer = file.open(O_WRONLY);
  const auto at = [&](const char* what) { run.got(what, ::lseek(fd, 0, SEEK_CUR)); };
  std::string all(kSize, ' ');
  for (size_t i = 0; i < kSize; ++i) all[i] = static_cast<char>('a' + i % 23);
  run.got("write", run.call.write(fd, all.data(), kSize));
  at("behind it");
  run.got("pwrite", run.call.pwrite(fd, "0123456789", 10, 100));
  iovec two[] = {{all.data(), 3}, {all.data() + 20, 4}};
  run.got("pwritev", run.call.pwritev(fd, two, 2, 200));
  run.got("writev", run.call.writev(fd, two, 2));
  at("behind what was appended");
  run.got("back", ::lseek(fd, 0, SEEK_SET));
  std::string buffer(2 * kSize, '.');
  const auto gets = [&](const char* what, ssize_t n) {
    run.got(what, n);
    run.note("bytes", std::to_string(std::hash<std::string>()(buffer)));
    buffer.assign(2 * kSize, '.');
  };
  gets("read", run.call.read(fd, buffer.data(), 4'000));
  at("behind it");
  gets("more than there is", run.call.read(fd, buffer.data(), buffer.size()));
  gets("the end", run.call.read(fd, buffer.data(), buffer.size()));
  gets("nothing", run.call.read(fd, buffer.data(), 0));
  gets("pread", run.call.pread(fd, buffer.data(), 300, 50));
  gets("over the end", run.call.pread(fd, buffer.data(), 300, kSize - 100));
  gets("behind the end", run.call.pread(fd, buffer.data(), 300, 2 * kSize));
  at("where it was");
  iovec three[] = {{buffer.data(), 10}, {buffer.data() + 50, 0}, {buffer.data() + 100, 5'000}};
  gets("preadv", run.call.preadv(fd, three, 3, 7'000));
  gets("preadv2", run.call.preadv2(fd, three, 3, 10, 0));
  run.got("back", ::lseek(fd, 0, SEEK_SET));
  gets("readv", run.call.readv(fd, three, 3));
  at("behind it");
  // What is refused.
  gets("write only", run.call.read(writer, buffer.data(), 5));
  gets("write only", run.call.pread(writer, buffer.data(), 5, 0));
  run.got("read only", run.call.write(reader, "x", 1));
  run.got("read only", run.call.pwrite(reader, "x", 1, 0));
  gets("before the file", run.call.pread(fd, buffer.data(), 5, -1));
  gets("before the file", run.call.preadv(fd, three, 3, -5));
  const int too_few = static_cast<int>(run.call.dup(999)), too_many = 5'000;  // numbers that the compiler does not know
  gets("parts", run.call.preadv(fd, three, too_few, 0));
  run.got("parts", run.call.pwritev(fd, std::vector<iovec>(too_many).data(), too_many, 0));
  run.got("pointer", run.call.pread(fd, badPointer(), 5, 0));
  run.got("pointer", run.call.preadv(fd, static_cast<iovec*>(badPointer()), 1, 0));
  run.got("pointer", run.call.pwrite(fd, badPointer(), 5, 0));
  const size_t sizes[] = {SIZE_MAX, size_t{1} << 47};
  for (const size_t size : sizes) {
    gets("size", run.call.read(fd, badPointer(), size));
    gets("size", run.call.pread(fd, badPointer(), size, 0));
    run.got("size", run.call.write(fd, badPointer(), size));
    run.got("size", run.call.pwrite(fd, badPointer(), size, 0));
  }
  const int adjustment = run.call.open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  run.got("nothing", run.call.write(adjustment, "", 0));
  gets("of memory", std::min<ssize_t>(run.call.read(adjustment, buffer.data(), 1), 1));
  gets("of memory", run.call.pread(adjustment, buffer.data(), 5, 100));
  run.call.close(adjustment);
  iovec half_bad[] = {{buffer.data(), 5'000}, {badPointer(), 10}};
  gets("half of a pointer", run.call.preadv(fd, half_bad, 2, 0));
  gets("closed", run.call.pread(999, buffer.data(), 5, 0));
  run.got("closed", run.call.pwrite(999, "x", 1, 0));
  int pipe[2];
  run.got("pipe", run.call.pipe(pipe));
  gets("pipe", run.call.pread(pipe[0], buffer.data(), 5, 0));
  run.got("pipe", run.call.pwrite(pipe[1], "x", 1, 0));
  gets("pipe", run.call.preadv(pipe[0], three, 3, 0));
  for (const int end : pipe) run.call.close(end);
  const int folder = run.call.open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  gets("folder", run.call.read(folder, buffer.data(), 5));
  gets("folder", run.call.pread(folder, buffer.data(), 5, 0));
  run.call.close(folder);
  const int append = file.open(O_WRONLY | O_APPEND);
  run.got("at the end, whatever the offset", run.call.pwrite(append, "end", 3, 0));
  const int sync = file.open(O_RDWR | O_DSYNC);
  run.got("to the disk", run.call.pwrite(sync, "disk", 4, 30));
  gets("from the cache", run.call.pread(sync, buffer.data(), 50, 0));
}

class Files : public SameAsLibc {};

TEST_P(Files, InEveryWay) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Of, Files,
                         testing::Values(Case{"wholeFiles", wholeFiles}, Case{"records", records}, Case{"opens", opens},
                                         Case{"opensOfAFifo", opensOfAFifo}, Case{"opensOfAPipe", opensOfAPipe},
                                         Case{"disks", disks}, Case{"bytesOfFiles", bytesOfFiles}),
                         nameOf);

TEST_P(Files, OnTheThreadItself) {
  const FilesMode off(false);
  compare(GetParam());
}

// ---- What has to be done by a helper thread lets others run. -----------------------------------------------------------------

using Call = void (*)(int fd);

/// Makes each of the calls that wait for files, and expects another fiber of the only worker to run during it or not.
void expectOthersDuringDiskCalls(bool others) {
  const Call calls[] = {
      [](int fd) { EXPECT_EQ(::fsync(fd), 0); },
      [](int fd) { EXPECT_EQ(::fdatasync(fd), 0); },
      [](int fd) { EXPECT_EQ(::syncfs(fd), 0); },
      [](int) { ::sync(); },
      [](int fd) { EXPECT_EQ(::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE), 0); },
      [](int) { EXPECT_EQ(::msync(nullptr, 0, MS_SYNC), 0); },
      [](int fd) { EXPECT_EQ(::copy_file_range(fd, nullptr, fd, nullptr, 0, 0), 0); },
      [](int fd) { EXPECT_EQ(::sendfile(fd, fd, nullptr, 0), 0); },
  };
  File file;
  const int fd = file.open();
  for (const Call call : calls) {
    bool other = false;
    inFiber([&] {
      IOManager::GetThis()->schedule([&] { other = true; });
      call(fd);
      EXPECT_EQ(other, others);
    });
  }
}

TEST(Disk, LetsAnotherFiberOfTheOnlyWorkerRun) { expectOthersDuringDiskCalls(true); }

TEST(Disk, BlocksTheThreadIfTheSettingSaysSo) {
  EXPECT_TRUE(hookFiles());
  const FilesMode off(false);
  EXPECT_FALSE(hookFiles());
  expectOthersDuringDiskCalls(false);
}

// A library that calls fdatasync under a recursive mutex of its own would have two fibers of one thread in it.
TEST(Disk, BlocksTheThreadIfLocksDo) {
  setHookLocks(false);
  expectOthersDuringDiskCalls(false);
  setHookLocks(true);
}

TEST(Disk, TwoFibersAreNeverInOneRecursiveMutex) {
  File file;
  const int fd = file.open();
  std::recursive_mutex mutex;
  int inside = 0;
  IOManager workers(1, false, "disk");
  for (int i = 0; i < 2; ++i) {
    workers.schedule([&] {
      for (int step = 0; step < 20; ++step) {
        const std::lock_guard lock(mutex);
        EXPECT_EQ(++inside, 1);
        EXPECT_EQ(::fdatasync(fd), 0);
        --inside;
      }
    });
  }
  workers.stop();
}

// Without the hook the close takes its five seconds, because the other fiber, which is the peer, does not run.
TEST(LingeringClose, LetsThePeersFiberOfTheOnlyWorkerRun) {
  Pair pair = tcpPair();
  // Read by a fiber that may outlive the closing one: a close waits for acknowledgements, not for the peer's reads.
  size_t sent = 0;
  bool other = false;
  inFiber([&] {
    const std::vector<char> much(1 << 16);
    for (ssize_t n; (n = ::send(pair.a, much.data(), much.size(), MSG_DONTWAIT)) > 0;) sent += static_cast<size_t>(n);
    const linger some_time{1, 5};
    EXPECT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_LINGER, &some_time, sizeof some_time), 0);
    IOManager::GetThis()->schedule([&] {
      other = true;
      std::vector<char> bytes(1 << 16);
      size_t got = 0;
      for (ssize_t n; (n = ::recv(pair.b, bytes.data(), bytes.size(), 0)) > 0;) got += static_cast<size_t>(n);
      EXPECT_EQ(got, sent);
    });
    errno = ENOTTY;
    pair.closeA();
    EXPECT_EQ(errno, ENOTTY);
    EXPECT_TRUE(other);
  });
}

}  // namespace
}  // namespace sylar::test
