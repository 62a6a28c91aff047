#include "tests/hook/signal/signal_support.h"

#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/hook/core/queue_support.h"
#include "tests/hook/process/children.h"

namespace sylar::test {
namespace {

timespec sleepTime() { return {g_sleep_ms / 1000, g_sleep_ms % 1000 * 1'000'000}; }

std::shared_ptr<Pair> shared(Ends ends) { return std::make_shared<Pair>(ends); }
std::shared_ptr<Pair> sharedUnix(int type = SOCK_STREAM) { return shared(makeUnix(hookedCalls(), type)); }
std::shared_ptr<Pair> sharedPipe() { return shared(makePipe(hookedCalls())); }

/// A file that is gone with its scope.
class TemporaryFile {
 public:
  TemporaryFile() : m_path("/tmp/sylar_signal_" + std::to_string(::getpid()) + "_" + std::to_string(s_count++)) {
    std::filesystem::remove(m_path);  // left by a process that had this id and was killed
  }
  ~TemporaryFile() { std::filesystem::remove(m_path); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const char* path() const { return m_path.c_str(); }

 private:
  static inline int s_count = 0;
  const std::string m_path;
};

void setTimeout(int fd, int option) {
  const timeval minute{60, 0};
  EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, option, &minute, sizeof minute), 0);
}

/// Fills what `fd` takes without waiting.
void fill(int fd) {
  const std::vector<char> bytes(1 << 20);
  while (::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
}

void drain(int fd) {
  std::vector<char> bytes(1 << 20);
  while (::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
}

Waiting reads(const std::shared_ptr<Pair>& pair, std::function<long(int fd)> call) {
  return {[pair, call] { return call(pair->a); }, [pair] { EXPECT_EQ(::write(pair->b, "x", 1), 1); }};
}

Waiting receives(int option, std::function<long(int fd, char* to)> call) {
  const auto pair = sharedUnix();
  if (option != 0) setTimeout(pair->a, option);
  return reads(pair, [call](int fd) {
    char byte;
    return call(fd, &byte);
  });
}

Waiting sends(int option) {
  const auto pair = sharedUnix();
  fill(pair->a);
  if (option != 0) setTimeout(pair->a, option);
  return {[pair] { return ::send(pair->a, "x", 1, 0); }, [pair] { drain(pair->b); }};
}

/// Returns `result` as 0 if it is `whole`. In part it counts as interrupted, because a handler ends the transfer.
long wholeOrInterrupted(long result, size_t whole) {
  if (result < 0 || static_cast<size_t>(result) == whole) return std::min(result, 0L);
  EXPECT_GT(result, 0);
  errno = EINTR;
  return -1;
}

constexpr size_t kMuch = 8 << 20;

/// A transfer to one end that has moved bytes, and waits for room. `finish` receives all of them.
Waiting sendsMuch(const std::shared_ptr<Pair>& pair, bool to_b, long (*send)(int fd)) {
  const int from = to_b ? pair->a : pair->b;
  const int to = to_b ? pair->b : pair->a;
  return {[pair, to, send] { return wholeOrInterrupted(send(to), kMuch); },
          [pair, from] {
            std::vector<char> bytes(1 << 20);
            for (size_t done = 0; done < kMuch;) {
              const ssize_t n = ::read(from, bytes.data(), bytes.size());
              ASSERT_GT(n, 0);
              done += static_cast<size_t>(n);
            }
          }};
}

long writeAtOnce(int fd) {
  const std::vector<char> bytes(kMuch);
  return ::write(fd, bytes.data(), bytes.size());
}

/// The halves of what is sent.
struct Halves {
  std::vector<char> bytes = std::vector<char>(kMuch);
  iovec parts[2] = {{bytes.data(), kMuch / 2}, {bytes.data() + kMuch / 2, kMuch / 2}};
};

long writeParts(int fd) {
  const Halves halves;
  return ::writev(fd, halves.parts, 2);
}

long sendParts(int fd) {
  Halves halves;
  msghdr message{};
  message.msg_iov = halves.parts;
  message.msg_iovlen = 2;
  return ::sendmsg(fd, &message, 0);
}

long sendFile(int fd) {
  const TemporaryFile file;
  const int in = ::open(file.path(), O_RDWR | O_CREAT, 0600);
  EXPECT_EQ(::ftruncate(in, kMuch), 0);
  const long sent = ::sendfile(fd, in, nullptr, kMuch);
  const int error = errno;
  ::close(in);
  errno = error;
  return sent;
}

/// A receive that has some of its bytes, and waits for the others.
Waiting receivesMore(const std::shared_ptr<Pair>& pair, int flags) {
  EXPECT_EQ(::write(pair->b, "abc", 3), 3);
  return {[pair, flags] {
            char bytes[6];
            return wholeOrInterrupted(::recv(pair->a, bytes, sizeof bytes, MSG_WAITALL | flags), sizeof bytes);
          },
          [pair] { EXPECT_EQ(::write(pair->b, "def", 3), 3); }};
}

/// A call for two messages of which one comes before it waits.
Waiting receivesAnotherMessage() {
  const auto pair = sharedUnix(SOCK_DGRAM);
  EXPECT_EQ(::write(pair->b, "x", 1), 1);
  return {[pair] {
            char bytes[2];
            iovec parts[2] = {{bytes, 1}, {bytes + 1, 1}};
            mmsghdr messages[2]{};
            for (int i = 0; i < 2; ++i) {
              messages[i].msg_hdr.msg_iov = &parts[i];
              messages[i].msg_hdr.msg_iovlen = 1;
            }
            return wholeOrInterrupted(::recvmmsg(pair->a, messages, 2, 0, nullptr), 2);
          },
          [pair] { EXPECT_EQ(::write(pair->b, "y", 1), 1); }};
}

/// Sends more messages than there is room for.
Waiting sendsAnotherMessage() {
  const auto pair = sharedUnix(SOCK_DGRAM);
  constexpr unsigned kMessages = 500;
  return {[pair] {
            char byte = 'x';
            iovec part{&byte, 1};
            std::vector<mmsghdr> messages(kMessages);
            for (mmsghdr& one : messages) {
              one.msg_hdr.msg_iov = &part;
              one.msg_hdr.msg_iovlen = 1;
            }
            return wholeOrInterrupted(::sendmmsg(pair->b, messages.data(), kMessages, 0), kMessages);
          },
          [pair] {
            char byte;
            for (unsigned i = 0; i < kMessages; ++i) EXPECT_EQ(::read(pair->a, &byte, 1), 1);
          }};
}

Waiting accepts(int option) {
  const auto pair = shared({boundSocket(hookedCalls(), SOCK_STREAM), ::socket(AF_INET, SOCK_STREAM, 0)});
  if (option != 0) setTimeout(pair->a, option);
  return {[pair]() -> long {
            const int fd = ::accept(pair->a, nullptr, nullptr);
            if (fd >= 0) ::close(fd);
            return fd >= 0 ? 0 : -1;
          },
          [pair] { EXPECT_EQ(connectTo(hookedCalls(), pair->b, addressOf(pair->a)), 0); }};
}

/// Connects to an AF_UNIX listener whose backlog is full.
Waiting connects(int option) {
  const auto listener = shared({::socket(AF_UNIX, SOCK_STREAM, 0), ::socket(AF_UNIX, SOCK_STREAM, 0)});
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_EQ(::bind(listener->a, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(listener->a, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(::listen(listener->a, 0), 0);
  EXPECT_EQ(::connect(listener->b, reinterpret_cast<sockaddr*>(&address), size), 0);
  const auto client = shared({::socket(AF_UNIX, SOCK_STREAM, 0), ::socket(AF_UNIX, SOCK_STREAM, 0)});
  if (option != 0) setTimeout(client->a, option);
  return {[listener, client, address, size] { return ::connect(client->a, reinterpret_cast<const sockaddr*>(&address), size); },
          [listener] { ::close(::accept(listener->a, nullptr, nullptr)); }};
}

/// Waits for the lock of a file that another open file has.
Waiting locks(std::function<long(int fd)> take, std::function<void(int fd)> take_first, std::function<void(int fd)> release) {
  const TemporaryFile file;
  const auto pair = shared({::open(file.path(), O_CREAT | O_RDWR, 0600), ::open(file.path(), O_RDWR)});
  take_first(pair->b);
  return {[pair, take] { return take(pair->a); }, [pair, release] { release(pair->b); }};
}

Waiting waitsForChild(std::function<pid_t(pid_t child, int* status)> wait) {
  const auto pipe = sharedPipe();
  const pid_t child = childThatReads(pipe->a);
  return {[pipe, child, wait] {
            int status = -1;
            const pid_t told = wait(child, &status);
            if (told == -1) {
              const int error = errno;
              tellToExit(pipe->b, 0);
              ::waitpid(child, nullptr, 0);
              errno = error;
            }
            return told;
          },
          [pipe] { tellToExit(pipe->b, 0); }};
}

Waiting opensFifo() {
  const auto file = std::make_shared<TemporaryFile>();
  EXPECT_EQ(::mkfifo(file->path(), 0600), 0);
  return {[file]() -> long {
            const int fd = ::open(file->path(), O_RDONLY);
            if (fd >= 0) ::close(fd);
            return fd >= 0 ? 0 : -1;
          },
          [file] {
            int fd;
            while ((fd = ::open(file->path(), O_WRONLY | O_NONBLOCK)) < 0) Fiber::YieldToReady();
            ::close(fd);
          }};
}

/// Waits until there is something to read, by `call`.
Waiting polls(std::function<long(int fd)> call) { return reads(sharedPipe(), std::move(call)); }

fd_set setOf(int fd) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  return set;
}

long errorOf(int error) {
  errno = error;
  return error == 0 ? 0 : -1;
}

/// Sleeps for g_sleep_ms.
Waiting sleeps(std::function<long()> call) { return {std::move(call), nullptr}; }

timespec afterSleepTime(clockid_t clock) {
  const timespec more = sleepTime();
  timespec time;
  ::clock_gettime(clock, &time);
  const long ns = time.tv_nsec + more.tv_nsec;
  return {time.tv_sec + more.tv_sec + ns / 1'000'000'000, ns % 1'000'000'000};
}

Waiting receivesFromQueue() {
  const auto queue = std::make_shared<MessageQueue>();
  const auto call = [queue] {
    char bytes[8];
    return ::mq_receive(queue->fd, bytes, sizeof bytes, nullptr);
  };
  return {call, [queue] { EXPECT_EQ(::mq_send(queue->fd, "x", 1, 0), 0); }};
}
Waiting sendsToQueue() {
  const auto queue = std::make_shared<MessageQueue>(0, 1);
  EXPECT_EQ(::mq_send(queue->fd, "x", 1, 0), 0);
  return {[queue] { return ::mq_send(queue->fd, "x", 1, 0); },
          [queue] {
            char bytes[8];
            EXPECT_EQ(::mq_receive(queue->fd, bytes, sizeof bytes, nullptr), 1);
          }};
}
Waiting receivesFromSystem() {
  const auto queue = std::make_shared<SystemQueue>();
  return {[queue] { return queue->receive(hookedCalls()); }, [queue] { EXPECT_EQ(queue->send(hookedCalls(), 1, "x"), 0); }};
}
Waiting sendsToSystem() {
  const auto queue = std::make_shared<SystemQueue>();
  while (queue->send(hookedCalls(), 1, "x", IPC_NOWAIT) == 0) continue;
  return {[queue] { return queue->send(hookedCalls(), 1, "x"); }, [queue] { EXPECT_EQ(queue->receive(hookedCalls()), 8); }};
}
Waiting takesSemaphore(const timespec* timeout) {
  const auto set = std::make_shared<Semaphores>();
  return {[set, timeout] { return set->op(hookedCalls(), {add(0, -1)}, timeout); },
          [set] { EXPECT_EQ(set->op(hookedCalls(), {add(0, 1)}), 0); }};
}
void setLock(int fd, int command, short type) {
  struct flock lock {};
  lock.l_type = type;
  EXPECT_EQ(::fcntl(fd, command, &lock), 0);
}

}  // namespace

std::vector<WaitingCase> waitingCases() {
  return {
      {"read", false, [] { return receives(0, [](int fd, char* to) { return ::read(fd, to, 1); }); }},
      {"read_pipe", false,
       [] {
         return reads(sharedPipe(), [](int fd) {
           char to;
           return ::read(fd, &to, 1);
         });
       }},
      {"readv", false,
       [] {
         return receives(0, [](int fd, char* to) {
           const iovec part{to, 1};
           return ::readv(fd, &part, 1);
         });
       }},
      {"recv", false, [] { return receives(0, [](int fd, char* to) { return ::recv(fd, to, 1, 0); }); }},
      {"recv_with_timeout", true, [] { return receives(SO_RCVTIMEO, [](int fd, char* to) { return ::recv(fd, to, 1, 0); }); }},
      {"recv_with_timeout_of_writes", false,
       [] { return receives(SO_SNDTIMEO, [](int fd, char* to) { return ::recv(fd, to, 1, 0); }); }},
      {"recvmsg", false,
       [] {
         return receives(0, [](int fd, char* to) {
           iovec part{to, 1};
           msghdr message{};
           message.msg_iov = &part;
           message.msg_iovlen = 1;
           return ::recvmsg(fd, &message, 0);
         });
       }},
      {"recvmmsg", false,
       [] {
         return receives(0, [](int fd, char* to) -> long {
           iovec part{to, 1};
           mmsghdr message{};
           message.msg_hdr.msg_iov = &part;
           message.msg_hdr.msg_iovlen = 1;
           return ::recvmmsg(fd, &message, 1, 0, nullptr);
         });
       }},
      {"send", false, [] { return sends(0); }},
      {"send_with_timeout", true, [] { return sends(SO_SNDTIMEO); }},
      {"accept", false, [] { return accepts(0); }},
      {"accept_with_timeout", true, [] { return accepts(SO_RCVTIMEO); }},
      {"connect", false, [] { return connects(0); }},
      {"connect_with_timeout", true, [] { return connects(SO_SNDTIMEO); }},
      {"write_of_pieces_to_pipe", true, [] { return sendsMuch(sharedPipe(), true, writeAtOnce); }},
      {"write_of_pieces_to_unix", true, [] { return sendsMuch(sharedUnix(), false, writeAtOnce); }},
      {"write_of_pieces_to_tcp", true, [] { return sendsMuch(shared(makeTcp(hookedCalls())), false, writeAtOnce); }},
      {"writev_of_pieces", true, [] { return sendsMuch(sharedUnix(), false, writeParts); }},
      {"sendmsg_of_pieces", true, [] { return sendsMuch(sharedUnix(), false, sendParts); }},
      {"sendfile_of_pieces", true, [] { return sendsMuch(sharedUnix(), false, sendFile); }},
      {"recv_of_pieces_from_unix", true, [] { return receivesMore(sharedUnix(), 0); }},
      {"recv_of_pieces_from_tcp", true, [] { return receivesMore(shared(makeTcp(hookedCalls())), 0); }},
      {"peek_of_pieces", true, [] { return receivesMore(shared(makeTcp(hookedCalls())), MSG_PEEK); }},
      {"recvmmsg_of_another", true, receivesAnotherMessage},
      {"sendmmsg_of_another", true, sendsAnotherMessage},
      {"splice", false,
       [] {
         const auto to = sharedPipe();
         return reads(sharedPipe(), [to](int fd) { return ::splice(fd, nullptr, to->b, nullptr, 1, 0); });
       }},
      {"poll", true,
       [] {
         return polls([](int fd) {
           pollfd in{fd, POLLIN, 0};
           return ::poll(&in, 1, -1);
         });
       }},
      {"poll_of_nothing", true, [] { return sleeps([] { return ::poll(nullptr, 0, g_sleep_ms); }); }},
      {"ppoll", true,
       [] {
         return polls([](int fd) {
           pollfd in{fd, POLLIN, 0};
           sigset_t none;
           ::sigemptyset(&none);
           return ::ppoll(&in, 1, nullptr, &none);
         });
       }},
      {"select", true,
       [] {
         return polls([](int fd) {
           fd_set in = setOf(fd);
           const long ready = ::select(fd + 1, &in, nullptr, nullptr, nullptr);
           const int error = errno;
           EXPECT_TRUE(FD_ISSET(fd, &in));
           errno = error;
           return ready;
         });
       }},
      {"pselect", true,
       [] {
         return polls([](int fd) {
           fd_set in = setOf(fd);
           sigset_t none;
           ::sigemptyset(&none);
           return ::pselect(fd + 1, &in, nullptr, nullptr, nullptr, &none);
         });
       }},
      {"epoll_wait", true,
       [] {
         return polls([](int fd) -> long {
           const int epoll = ::epoll_create1(0);
           epoll_event event{};
           event.events = EPOLLIN;
           EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
           const int ready = ::epoll_wait(epoll, &event, 1, -1);
           const int error = errno;
           ::close(epoll);
           errno = error;
           return ready;
         });
       }},
      {"nanosleep", true,
       [] {
         return sleeps([] {
           const timespec time = sleepTime();
           return ::nanosleep(&time, nullptr);
         });
       }},
      {"usleep", true, [] { return sleeps([] { return ::usleep(static_cast<useconds_t>(g_sleep_ms) * 1000); }); }},
      {"clock_nanosleep", true,
       [] {
         return sleeps([] {
           const timespec time = sleepTime();
           return errorOf(::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr));
         });
       }},
      {"clock_nanosleep_until", true,
       [] {
         return sleeps([] {
           const timespec end = afterSleepTime(CLOCK_REALTIME);
           return errorOf(::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, nullptr));
         });
       }},
      {"waitpid", false, [] { return waitsForChild([](pid_t child, int* status) { return ::waitpid(child, status, 0); }); }},
      {"wait_for_any", false, [] { return waitsForChild([](pid_t, int* status) { return ::wait(status); }); }},
      {"waitid", false,
       [] {
         return waitsForChild([](pid_t child, int*) {
           siginfo_t info{};
           return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED);
         });
       }},
      {"flock", false,
       [] {
         return locks([](int fd) { return ::flock(fd, LOCK_EX); }, [](int fd) { EXPECT_EQ(::flock(fd, LOCK_EX), 0); },
                      [](int fd) { EXPECT_EQ(::flock(fd, LOCK_UN), 0); });
       }},
      {"fcntl_lock", false,
       [] {
         return locks(
             [](int fd) {
               struct flock lock {};
               lock.l_type = F_WRLCK;
               return ::fcntl(fd, F_OFD_SETLKW, &lock);
             },
             [](int fd) { setLock(fd, F_OFD_SETLK, F_WRLCK); }, [](int fd) { setLock(fd, F_OFD_SETLK, F_UNLCK); });
       }},
      {"open_of_a_fifo", false, opensFifo},
      {"mq_receive", false, receivesFromQueue},
      {"mq_send", false, sendsToQueue},
      {"msgrcv", true, receivesFromSystem},
      {"msgsnd", true, sendsToSystem},
      {"semop", true, [] { return takesSemaphore(nullptr); }},
      {"semtimedop", true,
       [] {
         static constexpr timespec kMinute{60, 0};
         return takesSemaphore(&kMinute);
       }},
  };
}

}  // namespace sylar::test
