// HA-8: every call that clients cannot do without is entered by fibers, suspends them, and passes through on threads. The counters
// of hookStats() tell, and the lists at the end leave none out.
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <threads.h>

#ifdef __x86_64__
#include <linux/futex.h>
#endif

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "sylar/hook_stats.h"
#include "sylar/io/fd_table.h"
#include "sylar/sync/event.h"
#include "sylar/testing/virtual_time.h"
#include "tests/hook/core/queue_support.h"
#include "tests/hook/lock/lock_support.h"
#include "tests/hook/names/names.h"
#include "tests/hook/support.h"
#include "tests/support/alias_call.h"
#include "tests/support/sanitized.h"

// What a fortified or an old binary calls.
extern "C" {
ssize_t __read_chk(int fd, void* buffer, size_t size, size_t buffer_size);
ssize_t __pread_chk(int fd, void* buffer, size_t size, off_t offset, size_t buffer_size);
ssize_t __pread64_chk(int fd, void* buffer, size_t size, off64_t offset, size_t buffer_size);
ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t buffer_size, int flags);
ssize_t __recvfrom_chk(int fd, void* buffer, size_t size, size_t buffer_size, int flags, sockaddr* from, socklen_t* from_size);
int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t size_bytes);
int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t size_bytes);
int __select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout);
int __poll(pollfd* fds, nfds_t count, int timeout_ms);
ssize_t __read(int fd, void* buffer, size_t size);
ssize_t __write(int fd, const void* data, size_t size);
ssize_t __send(int fd, const void* data, size_t size, int flags);
int __connect(int fd, const sockaddr* address, socklen_t size);
int __nanosleep(const timespec* duration, timespec* rest);
int __close(int fd);
}

namespace sylar::test::coverage {
namespace {

bool inAFiber() { return IOManager::GetThis() != nullptr; }

/// Another fiber of the only worker, which comes to run when its maker waits; for a plain thread another thread. Joined with its
/// scope.
class Peer {
 public:
  explicit Peer(std::function<void()> body) {
    const auto run = [this, body = std::move(body)] {
      m_begun.store(true);
      body();
      m_ended.set();
    };
    if (inAFiber()) {
      IOManager::GetThis()->schedule(run);
    } else {
      m_thread = std::thread(run);
    }
  }
  ~Peer() {
    m_ended.wait();
    if (m_thread.joinable()) m_thread.join();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool begun() const { return m_begun.load(); }
  /// Makes a call of a fiber that lets this one run.
  template <class Call>
  auto runsDuring(Call call) const {
    const auto result = call();
    EXPECT_TRUE(begun() || !inAFiber());
    return result;
  }

 private:
  std::atomic<bool> m_begun{false};
  Event m_ended;
  std::thread m_thread;
};

/// Makes a call that suspends no fiber.
template <class Call>
auto atOnce(Call call) {
  const Peer other([] {});
  const auto result = call();
  EXPECT_FALSE(inAFiber() && other.begun());
  return result;
}

/// A call that waits in a fiber, and may on a thread.
struct Waits {
  std::string name;            // the symbol, and what it is called for, behind a blank
  const char* counted_as;      // a form of another function is counted as that
  std::function<void()> call;  // with all that is to be seen of it
};
std::ostream& operator<<(std::ostream& out, const Waits& one) { return out << one.name; }

Waits receives(const char* name, const char* counted_as, ssize_t (*receive)(int fd, char* buffer, size_t size)) {
  return {name, counted_as, [receive] {
            const Pair pair = unixPair();
            const Peer sender([&] { EXPECT_EQ(::send(pair.b, "hello", 5, 0), 5); });
            char buffer[8] = {};
            EXPECT_EQ(sender.runsDuring([&] { return receive(pair.a, buffer, sizeof buffer); }), 5);
            EXPECT_STREQ(buffer, "hello");
          }};
}

/// Sends more than the buffers hold.
Waits sends(const char* name, const char* counted_as, ssize_t (*send)(int fd, char* data, size_t size)) {
  return {name, counted_as, [send] {
            const Pair pair = unixPair();
            setBuffer(pair.a, SO_SNDBUF, 4096);
            std::vector<char> bytes = streamBytes(64 * 1024);
            std::vector<char> got(bytes.size());
            {
              const Peer receiver([&] { EXPECT_EQ(::recv(pair.b, got.data(), got.size(), MSG_WAITALL), ssize_t(got.size())); });
              EXPECT_EQ(receiver.runsDuring([&] { return send(pair.a, bytes.data(), bytes.size()); }), ssize_t(bytes.size()));
            }
            EXPECT_EQ(got, bytes);
          }};
}

// The forms of a transfer and of a wait, each with the arguments that follow.
template <auto kCall, auto... kMore>
ssize_t plain(int fd, char* data, size_t size) {
  return kCall(fd, data, size, kMore...);
}
template <auto kCall, auto... kMore>
ssize_t ofParts(int fd, char* data, size_t size) {
  const iovec part{data, size};
  return kCall(fd, &part, 1, kMore...);
}
template <auto kCall>
ssize_t ofMessage(int fd, char* data, size_t size) {
  iovec part{data, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return kCall(fd, &message, 0);
}
template <auto kCall, auto... kMore>
ssize_t ofMessages(int fd, char* data, size_t size) {
  iovec part{data, size};
  mmsghdr message{};
  message.msg_hdr.msg_iov = &part;
  message.msg_hdr.msg_iovlen = 1;
  EXPECT_EQ(kCall(fd, &message, 1, 0, kMore...), 1);
  return message.msg_len;
}
template <auto kCall>
ssize_t ofFile(int fd, char* data, size_t size) {
  const Pair file({::memfd_create("coverage", 0), -1});
  EXPECT_EQ(::write(file.a, data, size), ssize_t(size));
  off_t offset = 0;
  return kCall(fd, file.a, &offset, size);
}

/// Transfers at the begin of a file for which every call may wait.
Waits transfersAtOffset(const char* name, const char* counted_as, ssize_t (*transfer)(int fd, char* buffer, size_t size)) {
  return {name, counted_as, [transfer] {
            Owned owned;
            const Pair file({::open(owned.file().c_str(), O_RDWR | O_CLOEXEC), -1});
            EXPECT_EQ(::pwrite(file.a, "01234567", 8, 0), 8);
            FdTable::find(file.a)->setKind(FdKind::kSlowFile);
            char buffer[8] = {'0', '1', '2'};
            const Peer other([] {});
            EXPECT_EQ(other.runsDuring([&] { return transfer(file.a, buffer, sizeof buffer); }), 8);
            EXPECT_EQ(std::string_view(buffer, 3), "012");
            EXPECT_EQ(::pread(file.a, buffer, 8, 8), 0);
          }};
}

Waits accepts(const char* name, int (*accept_one)(int listener)) {
  return {name, "accept", [accept_one] {
            const Pair sockets({boundSocket(hookedCalls(), SOCK_STREAM), ::socket(AF_INET, SOCK_STREAM, 0)});
            const Peer client([&] { EXPECT_EQ(connectTo(hookedCalls(), sockets.b, addressOf(sockets.a)), 0); });
            const Pair accepted({client.runsDuring([&] { return accept_one(sockets.a); }), -1});
            EXPECT_GE(accepted.a, 0);
          }};
}

/// Connects to an AF_UNIX listener whose backlog is full.
Waits connects(const char* name, int (*connect_to)(int fd, const sockaddr* address, socklen_t size)) {
  return {name, "connect", [connect_to] {
            const auto make = [] { return ::socket(AF_UNIX, SOCK_STREAM, 0); };
            const Pair listening({make(), -1}), clients({make(), make()});
            sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
            auto* const to = reinterpret_cast<sockaddr*>(&address);
            socklen_t size = sizeof address;
            EXPECT_EQ(::bind(listening.a, to, sizeof address.sun_family), 0);  // to a free name
            EXPECT_EQ(::getsockname(listening.a, to, &size), 0);
            EXPECT_EQ(::listen(listening.a, 0), 0);
            EXPECT_EQ(::connect(clients.a, to, size), 0);
            const Peer server([&] { EXPECT_EQ(::close(::accept(listening.a, nullptr, nullptr)), 0); });
            EXPECT_EQ(server.runsDuring([&] { return connect_to(clients.b, to, size); }), 0);
          }};
}

Waits awaits(const char* name, const char* counted_as, int (*await_readable)(int fd)) {
  return {name, counted_as, [await_readable] {
            const Pair pair = unixPair();
            const Peer sender([&] { EXPECT_EQ(::send(pair.b, "x", 1, 0), 1); });
            EXPECT_EQ(sender.runsDuring([&] { return await_readable(pair.a); }), 1);
            char byte;
            EXPECT_EQ(::recv(pair.a, &byte, 1, MSG_DONTWAIT), 1);
          }};
}

template <auto kCall, auto... kMore>
int byPoll(int fd) {
  pollfd one{fd, POLLIN, 0};
  const auto ready = kCall(&one, 1, kMore...);
  EXPECT_EQ(one.revents, POLLIN);
  return ready;
}
template <auto kCall, auto... kMore>
int bySelect(int fd) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  const int ready = kCall(fd + 1, &set, nullptr, nullptr, nullptr, kMore...);
  EXPECT_TRUE(FD_ISSET(fd, &set));
  return ready;
}
template <auto kCall, auto... kMore>
int byEpoll(int fd) {
  const Pair epoll({::epoll_create1(0), -1});
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  EXPECT_EQ(::epoll_ctl(epoll.a, EPOLL_CTL_ADD, fd, &event), 0);
  epoll_event found[2] = {};
  const int ready = kCall(epoll.a, found, 2, kMore...);
  EXPECT_EQ(found[0].data.fd, fd);
  return ready;
}

/// On a thread it sleeps for no time at all.
template <class Sleep>
Waits sleeps(const char* name, const char* counted_as, Sleep sleep_for) {
  return {name, counted_as, [sleep_for] {
            const timespec time{inAFiber() ? 1 : 0, 0};
            const Peer other([] {});
            EXPECT_EQ(other.runsDuring([&] { return sleep_for(time); }), 0);
          }};
}

/// Makes a lookup that another has to answer. It gets the address of this host for any name, and no name for an address.
template <class Call>
auto answered(Call call) {
  const Pair server({boundSocket(hookedCalls(), SOCK_DGRAM), -1});
  EXPECT_EQ(__nss_configure_lookup("hosts", "dns"), 0);
  askServer(addressOf(server.a));
  const Peer peer([&] { answerOne(server.a, 1); });
  return peer.runsDuring(call);
}

const in_addr kHere = loopback().sin_addr;
constexpr char kHost[] = "coverage.test";

void expectHere(const hostent* found) {
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(std::memcmp(found->h_addr_list[0], &kHere, sizeof kHere), 0);
}
Waits findsHost(const char* name, hostent* (*find)()) {
  return {name, name, [find] { expectHere(answered(find)); }};
}

using FindInto = int (*)(hostent* entry, char* buffer, size_t size, hostent** found, int* error);
void findInto(FindInto find, const std::function<void(const hostent* found, int error)>& check) {
  hostent entry{};
  hostent* found = nullptr;
  char buffer[4096];
  int error = 0;
  EXPECT_EQ(answered([&] { return find(&entry, buffer, sizeof buffer, &found, &error); }), 0);
  check(found, error);
}
Waits findsHostInto(const char* name, FindInto find) {
  return {name, name, [find] { findInto(find, [](const hostent* found, int) { expectHere(found); }); }};
}

void getsAddresses() {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  ASSERT_EQ(answered([&] { return ::getaddrinfo(kHost, "80", &hints, &found); }), 0);
  const sockaddr_in expected = loopback(80);
  EXPECT_EQ(std::memcmp(found->ai_addr, &expected, sizeof expected), 0);
  ::freeaddrinfo(found);
}

// For an address of which no server knows a name.
void getsName() {
  const sockaddr_in address = loopback(80);
  const auto* const of = reinterpret_cast<const sockaddr*>(&address);
  char host[64], service[16];
  const auto call = [&] { return ::getnameinfo(of, sizeof address, host, sizeof host, service, sizeof service, NI_NUMERICSERV); };
  EXPECT_EQ(answered(call), 0);
  EXPECT_STREQ(host, "127.0.0.1");
  EXPECT_STREQ(service, "80");
}
void findsNoName() {
  EXPECT_EQ(answered([] { return ::gethostbyaddr(&kHere, sizeof kHere, AF_INET); }), nullptr);
  EXPECT_EQ(h_errno, NO_DATA);
}
void findsNoNameInto() {
  findInto([](auto... into) { return ::gethostbyaddr_r(&kHere, sizeof kHere, AF_INET, into...); },
           [](const hostent* found, int error) {
             EXPECT_EQ(found, nullptr);
             EXPECT_EQ(error, NO_DATA);
           });
}

/// A close that lingers, until the other side resets the connection.
Waits closes(const char* name, int (*close_it)(int fd)) {
  return {name, "close", [close_it] {
            Pair pair = tcpPair();
            const std::vector<char> much(1 << 16);
            while (libcCalls().send(pair.a, much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
            const linger long_time{1, 60};
            EXPECT_EQ(::setsockopt(pair.a, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
            const Peer other([&] {
              resetOnClose(pair.b);
              pair.closeB();
            });
            EXPECT_EQ(other.runsDuring([&] { return close_it(std::exchange(pair.a, -1)); }), 0);
          }};
}

/// Ends a stream that has more to write than its pipe holds, which is written as by fflush.
Waits endsStream(const char* name, int (*end)(FILE* file)) {
  return {name, "fflush", [end] {
            Pair pair = pipePair();
            EXPECT_GE(::fcntl(pair.b, F_SETPIPE_SZ, 4096), 0);
            const std::vector<char> bytes = streamBytes(32 * 1024);
            std::vector<char> got(bytes.size());
            std::vector<char> buffer(2 * bytes.size());
            FILE* const file = ::fdopen(std::exchange(pair.b, -1), "w");
            ASSERT_EQ(std::setvbuf(file, buffer.data(), _IOFBF, buffer.size()), 0);
            ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
            {
              const Peer reader([&] {
                for (size_t done = 0; done < got.size();) {
                  const ssize_t n = ::read(pair.a, got.data() + done, got.size() - done);
                  ASSERT_GT(n, 0);
                  done += static_cast<size_t>(n);
                }
              });
              EXPECT_EQ(reader.runsDuring([&] { return end(file); }), 0);
            }
            EXPECT_EQ(got, bytes);
          }};
}

/// The command ends when it has read a line.
void endsCommand() {
  const Pair pair = pipePair();
  FILE* const command = ::popen(("read line < /proc/self/fd/" + std::to_string(pair.a) + "; exit 7").c_str(), "w");
  ASSERT_NE(command, nullptr);
  const Peer writer([&] { EXPECT_EQ(::write(pair.b, "\n", 1), 1); });
  const int status = writer.runsDuring([&] { return ::pclose(command); });
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

/// Opens a FIFO, until another opens it for both sides.
Waits opens(const char* name, int flags, int (*open_it)(const char* path, int flags)) {
  return {name, "open", [=] {
            const std::string path = testing::TempDir() + "sylar_coverage_" + std::to_string(::getpid());
            ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
            Ends ends{-1, -1};
            {
              const Peer other([&] { ends[1] = ::open(path.c_str(), O_RDWR); });
              ends[0] = other.runsDuring([&] { return open_it(path.c_str(), flags); });
            }
            EXPECT_EQ(::unlink(path.c_str()), 0);
            for (const int fd : ends) EXPECT_EQ(::close(fd), 0);
          }};
}

/// Locks a mutex that another holds.
Waits locks(const char* name, int (*lock)(pthread_mutex_t* mutex, const timespec* end)) {
  return {name, name, [lock] {
            pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            Event held, let_go;
            const Peer holder([&] {
              EXPECT_EQ(::pthread_mutex_lock(&mutex), 0);
              held.set();
              let_go.wait();
              EXPECT_EQ(::pthread_mutex_unlock(&mutex), 0);
            });
            held.wait();
            const Peer other([&] { let_go.set(); });
            const timespec end = realTimeIn(std::chrono::hours(1));
            EXPECT_EQ(other.runsDuring([&] { return lock(&mutex, &end); }), 0);
            EXPECT_EQ(::pthread_mutex_unlock(&mutex), 0);
          }};
}

/// A condition that one waits for and another makes true.
struct Condition {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  bool is_true = false;

  template <class Tell>
  void makeTrue(Tell tell) {
    EXPECT_EQ(::pthread_mutex_lock(&mutex), 0);
    is_true = true;
    EXPECT_EQ(tell(&changed), 0);
    EXPECT_EQ(::pthread_mutex_unlock(&mutex), 0);
  }
};

Waits awaitsCondition(const char* name, int (*wait)(pthread_cond_t* changed, pthread_mutex_t* mutex, const timespec* end)) {
  return {name, name, [wait] {
            Condition condition;
            EXPECT_EQ(::pthread_mutex_lock(&condition.mutex), 0);  // so that the other comes behind the begin of the wait
            const Peer teller([&] { condition.makeTrue(&::pthread_cond_signal); });
            const timespec end = realTimeIn(std::chrono::hours(1));
            while (!condition.is_true) {
              EXPECT_EQ(teller.runsDuring([&] { return wait(&condition.changed, &condition.mutex, &end); }), 0);
            }
            EXPECT_EQ(::pthread_mutex_unlock(&condition.mutex), 0);
          }};
}

void comesDuringOnce() {
  static Event* s_begun;
  static Event* s_go_on;
  Event begun, go_on;
  s_begun = &begun;
  s_go_on = &go_on;
  pthread_once_t once = PTHREAD_ONCE_INIT;
  const auto call = [&] {
    return ::pthread_once(&once, [] {
      s_begun->set();
      s_go_on->wait();
    });
  };
  const Peer first([&] { EXPECT_EQ(call(), 0); });
  begun.wait();
  const Peer other([&] { go_on.set(); });
  EXPECT_EQ(other.runsDuring(call), 0);
}

#ifdef __x86_64__
template <long kNumber, class Result, class... Args>
Result byNumber(Args... args) {
  return static_cast<Result>(::syscall(kNumber, args...));
}

void awaitsFutex() {
  std::atomic<int> word{0};
  const Peer waker([&] {
    word.store(1);
    const long woken = ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
    EXPECT_TRUE(woken == 1 || !inAFiber());
  });
  do {
    const long result = waker.runsDuring([&] { return ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr); });
    EXPECT_TRUE(result == 0 || (errno == EAGAIN && !inAFiber()));
  } while (word.load() == 0);
}
#endif

Waits receivesFromQueue(const char* name, ssize_t (*receive)(mqd_t queue, char* to, size_t size)) {
  return {name, "mq_timedreceive", [receive] {
            const MessageQueue queue;
            const Peer sender([&] { EXPECT_EQ(::mq_send(queue.fd, "hello", 5, 0), 0); });
            char bytes[8] = {};
            EXPECT_EQ(sender.runsDuring([&] { return receive(queue.fd, bytes, sizeof bytes); }), 5);
            EXPECT_STREQ(bytes, "hello");
          }};
}
Waits sendsToQueue(const char* name, int (*send)(mqd_t queue, const char* from, size_t size)) {
  return {name, "mq_timedsend", [send] {
            const MessageQueue queue(0, 1);
            EXPECT_EQ(::mq_send(queue.fd, "first", 5, 0), 0);
            char bytes[8];
            const Peer receiver([&] { EXPECT_EQ(::mq_receive(queue.fd, bytes, sizeof bytes, nullptr), 5); });
            EXPECT_EQ(receiver.runsDuring([&] { return send(queue.fd, "second", 6); }), 0);
          }};
}
template <auto kReceive>
void receivesFromSystem() {
  const SystemQueue queue;
  const Peer sender([&] { EXPECT_EQ(queue.send(hookedCalls(), 1, "x"), 0); });
  SystemMessage message;
  EXPECT_EQ(sender.runsDuring([&] { return kReceive(queue.id, &message, sizeof message.text, 0, 0); }), 8);
}
template <auto kSend>
void sendsToSystem() {
  const SystemQueue queue;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(queue.send(hookedCalls(), 1, "x"), 0);
  const Peer receiver([&] { EXPECT_EQ(queue.receive(hookedCalls()), 8); });
  const SystemMessage message;
  EXPECT_EQ(receiver.runsDuring([&] { return kSend(queue.id, &message, sizeof message.text, 0); }), 0);
}
template <auto kOperate, auto... kMore>
void takesSemaphore() {
  const Semaphores set;
  sembuf give = add(0, 1), take = add(0, -1, SEM_UNDO);
  const Peer giver([&] { EXPECT_EQ(::semop(set.id, &give, 1), 0); });
  EXPECT_EQ(giver.runsDuring([&] { return kOperate(set.id, &take, 1, kMore...); }), 0);
}
template <class Wait>
void readsAsynchronously(Wait wait) {
  const Pair pipe = pipePair();
  const Peer writer([&] { EXPECT_EQ(::write(pipe.b, "hello", 5), 5); });
  char bytes[8] = {};
  aiocb one = request(pipe.a, bytes, sizeof bytes);
  aiocb* const list[] = {&one};
  EXPECT_EQ(writer.runsDuring([&] { return wait(list); }), 0);
  EXPECT_EQ(::aio_return(&one), 5);
}
template <auto kSuspend, class Request>
SYLAR_CALLS_ALIAS int readAndSuspend(aiocb* const* list) {
  EXPECT_EQ(::aio_read(list[0]), 0);
  return kSuspend(reinterpret_cast<const Request* const*>(list), 1, nullptr);
}
template <auto kSuspend, class Request>
void suspendsForAsynchronous() {
  readsAsynchronously(&readAndSuspend<kSuspend, Request>);
}
template <auto kList, class Request>
SYLAR_CALLS_ALIAS int listAndWait(aiocb* const* list) {
  return kList(LIO_WAIT, reinterpret_cast<Request* const*>(list), 1, nullptr);
}
template <auto kList, class Request>
void listsAsynchronous() {
  readsAsynchronously(&listAndWait<kList, Request>);
}

std::vector<Waits> waitingCalls() {
  return {
      receives("read", "read", plain<&::read>),
      receives("__read", "read", plain<&__read>),
      receives("__read_chk", "read", [](int fd, char* data, size_t size) { return __read_chk(fd, data, size, size); }),
      receives("readv", "readv", ofParts<&::readv>),
      receives("preadv2", "readv", ofParts<&::preadv2, -1, 0>),
      receives("preadv64v2", "readv", ofParts<&::preadv64v2, -1, 0>),
      receives("recv", "recv", plain<&::recv, 0>),
      receives("__recv_chk", "recv", [](int fd, char* data, size_t size) { return __recv_chk(fd, data, size, size, 0); }),
      receives("recvfrom", "recvfrom", plain<&::recvfrom, 0, nullptr, nullptr>),
      receives("__recvfrom_chk", "recvfrom",
               [](int fd, char* data, size_t size) { return __recvfrom_chk(fd, data, size, size, 0, nullptr, nullptr); }),
      receives("recvmsg", "recvmsg", ofMessage<&::recvmsg>),
      receives("recvmmsg", "recvmmsg", ofMessages<&::recvmmsg, nullptr>),
      sends("write", "write", plain<&::write>),
      sends("__write", "write", plain<&__write>),
      sends("writev", "writev", ofParts<&::writev>),
      sends("pwritev2", "writev", ofParts<&::pwritev2, -1, 0>),
      sends("pwritev64v2", "writev", ofParts<&::pwritev64v2, -1, 0>),
      sends("send", "sendto", plain<&::send, 0>),
      sends("__send", "sendto", plain<&__send, 0>),
      sends("sendto", "sendto", plain<&::sendto, 0, nullptr, 0>),
      sends("sendmsg", "sendmsg", ofMessage<&::sendmsg>),
      sends("sendmmsg", "sendmmsg", ofMessages<&::sendmmsg>),
      sends("sendfile", "sendfile", ofFile<&::sendfile>),
      sends("sendfile64", "sendfile", ofFile<&::sendfile64>),
      transfersAtOffset("pread", "pread", plain<&::pread, 0>),
      transfersAtOffset("pread64", "pread", plain<&::pread64, 0>),
      transfersAtOffset("__pread_chk", "pread", plain<&__pread_chk, 0, 8>),
      transfersAtOffset("__pread64_chk", "pread", plain<&__pread64_chk, 0, 8>),
      transfersAtOffset("preadv", "preadv", ofParts<&::preadv, 0>),
      transfersAtOffset("preadv64", "preadv", ofParts<&::preadv64, 0>),
      transfersAtOffset("pwrite", "pwrite", plain<&::pwrite, 0>),
      transfersAtOffset("pwrite64", "pwrite", plain<&::pwrite64, 0>),
      transfersAtOffset("pwritev", "pwritev", ofParts<&::pwritev, 0>),
      transfersAtOffset("pwritev64", "pwritev", ofParts<&::pwritev64, 0>),
      accepts("accept", [](int fd) { return ::accept(fd, nullptr, nullptr); }),
      accepts("accept4", [](int fd) { return ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC); }),
      connects("connect", &::connect),
      connects("__connect", &__connect),
      awaits("poll", "poll", byPoll<&::poll, -1>),
      awaits("__poll", "poll", byPoll<&__poll, -1>),
      awaits("__poll_chk", "poll", byPoll<&__poll_chk, -1, sizeof(pollfd)>),
      awaits("ppoll", "ppoll", byPoll<&::ppoll, nullptr, nullptr>),
      awaits("__ppoll_chk", "ppoll", byPoll<&__ppoll_chk, nullptr, nullptr, sizeof(pollfd)>),
      awaits("select", "select", bySelect<&::select>),
      awaits("__select", "select", bySelect<&__select>),
      awaits("pselect", "pselect", bySelect<&::pselect, nullptr>),
      awaits("epoll_wait", "epoll_pwait", byEpoll<&::epoll_wait, -1>),
      awaits("epoll_pwait", "epoll_pwait", byEpoll<&::epoll_pwait, -1, nullptr>),
      awaits("epoll_pwait2", "epoll_pwait2", byEpoll<&::epoll_pwait2, nullptr, nullptr>),
      sleeps("sleep", "sleep",
             [](const timespec& time) { return static_cast<int>(::sleep(static_cast<unsigned>(time.tv_sec))); }),
      sleeps("usleep", "usleep", [](const timespec& time) { return ::usleep(static_cast<useconds_t>(1'000'000 * time.tv_sec)); }),
      sleeps("nanosleep", "nanosleep", [](const timespec& time) { return ::nanosleep(&time, nullptr); }),
      sleeps("__nanosleep", "nanosleep", [](const timespec& time) { return __nanosleep(&time, nullptr); }),
      sleeps("clock_nanosleep", "clock_nanosleep",
             [](const timespec& time) { return ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr); }),
      sleeps("thrd_sleep", "clock_nanosleep", [](const timespec& time) { return ::thrd_sleep(&time, nullptr); }),
      {"getaddrinfo", "getaddrinfo", getsAddresses},
      {"getnameinfo", "getnameinfo", getsName},
      findsHost("gethostbyname", [] { return ::gethostbyname(kHost); }),
      findsHost("gethostbyname2", [] { return ::gethostbyname2(kHost, AF_INET); }),
      {"gethostbyaddr", "gethostbyaddr", findsNoName},
      findsHostInto("gethostbyname_r", [](auto... into) { return ::gethostbyname_r(kHost, into...); }),
      findsHostInto("gethostbyname2_r", [](auto... into) { return ::gethostbyname2_r(kHost, AF_INET, into...); }),
      {"gethostbyaddr_r", "gethostbyaddr_r", findsNoNameInto},
      closes("close", &::close),
      closes("__close", &__close),
      endsStream("fclose", &::fclose),
      endsStream("freopen", [](FILE* file) { return ::fclose(::freopen("/dev/null", "w", file)); }),
      {"pclose", "pclose", endsCommand},
      opens("open", O_RDONLY, [](const char* path, int flags) { return ::open(path, flags); }),
      opens("open64", O_WRONLY, [](const char* path, int flags) { return ::open64(path, flags); }),
      opens("openat", O_RDONLY, [](const char* path, int flags) { return ::openat(AT_FDCWD, path, flags); }),
      opens("openat64", O_WRONLY, [](const char* path, int flags) { return ::openat64(AT_FDCWD, path, flags); }),
      opens("creat", O_WRONLY, [](const char* path, int) { return ::creat(path, 0600); }),
      opens("creat64", O_WRONLY, [](const char* path, int) { return ::creat64(path, 0600); }),
      locks("pthread_mutex_lock", [](auto* mutex, auto*) { return ::pthread_mutex_lock(mutex); }),
      locks("pthread_mutex_timedlock", [](auto* mutex, auto* end) { return ::pthread_mutex_timedlock(mutex, end); }),
      locks("pthread_mutex_clocklock",
            [](auto* mutex, auto* end) { return ::pthread_mutex_clocklock(mutex, CLOCK_REALTIME, end); }),
      awaitsCondition("pthread_cond_wait", [](auto* changed, auto* mutex, auto*) { return ::pthread_cond_wait(changed, mutex); }),
      awaitsCondition("pthread_cond_timedwait",
                      [](auto* changed, auto* mutex, auto* end) { return ::pthread_cond_timedwait(changed, mutex, end); }),
      awaitsCondition(
          "pthread_cond_clockwait",
          [](auto* changed, auto* mutex, auto* end) { return ::pthread_cond_clockwait(changed, mutex, CLOCK_REALTIME, end); }),
      {"pthread_once", "pthread_once", comesDuringOnce},
      receivesFromQueue("mq_receive", [](mqd_t queue, char* to, size_t size) { return ::mq_receive(queue, to, size, nullptr); }),
      receivesFromQueue("mq_timedreceive",
                        [](mqd_t queue, char* to, size_t size) {
                          const timespec late{.tv_sec = INT_MAX, .tv_nsec = 0};
                          return ::mq_timedreceive(queue, to, size, nullptr, &late);
                        }),
      sendsToQueue("mq_send", [](mqd_t queue, const char* from, size_t size) { return ::mq_send(queue, from, size, 0); }),
      sendsToQueue("mq_timedsend",
                   [](mqd_t queue, const char* from, size_t size) {
                     const timespec late{.tv_sec = INT_MAX, .tv_nsec = 0};
                     return ::mq_timedsend(queue, from, size, 0, &late);
                   }),
      {"msgrcv", "msgrcv", receivesFromSystem<&::msgrcv>},
      {"msgsnd", "msgsnd", sendsToSystem<&::msgsnd>},
      {"semop", "semtimedop", takesSemaphore<&::semop>},
      {"semtimedop", "semtimedop", takesSemaphore<&::semtimedop, nullptr>},
      {"aio_suspend", "aio_suspend", suspendsForAsynchronous<&::aio_suspend, aiocb>},
      {"aio_suspend64", "aio_suspend", suspendsForAsynchronous<&::aio_suspend64, aiocb64>},
      {"lio_listio", "lio_listio", listsAsynchronous<&::lio_listio, aiocb>},
      {"lio_listio64", "lio_listio", listsAsynchronous<&::lio_listio64, aiocb64>},
#ifdef __x86_64__  // elsewhere it is libc's
      {"syscall futex", "syscall", awaitsFutex},
      receives("syscall read", "read", byNumber<SYS_read, ssize_t, int, char*, size_t>),
      sends("syscall write", "write", byNumber<SYS_write, ssize_t, int, char*, size_t>),
      accepts("syscall accept", [](int fd) { return byNumber<SYS_accept, int>(fd, nullptr, nullptr); }),
      connects("syscall connect", byNumber<SYS_connect, int, int, const sockaddr*, socklen_t>),
      awaits("syscall poll", "poll", byPoll<byNumber<SYS_poll, int, pollfd*, long, long>, -1L>),
      receivesFromQueue("syscall mq_timedreceive",
                        [](mqd_t queue, char* to, size_t size) {
                          return byNumber<SYS_mq_timedreceive, ssize_t>(queue, to, size, nullptr, nullptr);
                        }),
      sendsToQueue("syscall mq_timedsend",
                   [](mqd_t queue, const char* from, size_t size) {
                     return byNumber<SYS_mq_timedsend, int>(queue, from, size, 0, nullptr);
                   }),
      {"syscall msgrcv", "msgrcv", receivesFromSystem<byNumber<SYS_msgrcv, ssize_t, int, void*, size_t, long, int>>},
      {"syscall msgsnd", "msgsnd", sendsToSystem<byNumber<SYS_msgsnd, int, int, const void*, size_t, int>>},
      {"syscall semop", "semtimedop", takesSemaphore<byNumber<SYS_semop, int, int, sembuf*, size_t>>},
      sleeps("syscall nanosleep", "nanosleep", [](const timespec& time) { return byNumber<SYS_nanosleep, int>(&time, nullptr); }),
#endif
  };
}

/// A call that waits for nothing, and has no counter: it is hooked for what it does to others, and that is seen.
struct NeverWaits {
  std::string name;
  std::function<void()> call;
};
std::ostream& operator<<(std::ostream& out, const NeverWaits& one) { return out << one.name; }

bool isInTable(int fd) {
  const Entry* const entry = FdTable::find(fd);
  return entry != nullptr && entry->known();
}

NeverWaits creates(const char* name, int (*create)()) {
  return {name, [create] {
            const Pair made({atOnce(create), -1});
            ASSERT_GE(made.a, 0);
            EXPECT_TRUE(isInTable(made.a));
          }};
}
NeverWaits createsPipe(const char* name, int (*create)(int* ends)) {
  return {name, [create] {
            Ends ends{-1, -1};
            EXPECT_EQ(atOnce([&] { return create(ends.data()); }), 0);
            const Pair made(ends);
            for (const int fd : ends) EXPECT_TRUE(isInTable(fd) || kSanitized);  // whose runtimes make pipes of their own
          }};
}
NeverWaits copies(const char* name, int (*copy)(int fd, int target)) {
  return {name, [copy] {
            const Pair pair = unixPair();
            const Pair made({::eventfd(0, 0), -1});
            const int fd = atOnce([&] { return copy(pair.a, made.a); });
            EXPECT_TRUE(isInTable(fd));
            EXPECT_FALSE(FdTable::find(pair.a)->isPrivate());
            const Pair owned({fd != made.a ? fd : -1, -1});
          }};
}
NeverWaits closesAll(const char* name, void (*close_all)(int first)) {
  return {name, [close_all] {
            const Pair pair = unixPair();
            const int copy = ::fcntl(pair.a, F_DUPFD, 1000);  // behind all others
            ASSERT_TRUE(isInTable(copy));
            atOnce([&] { return close_all(copy), 0; });
            EXPECT_FALSE(isInTable(copy));
            EXPECT_EQ(::fcntl(copy, F_GETFD), -1);
          }};
}
NeverWaits forks(const char* name, pid_t (*fork_it)()) {
  return {name, [fork_it] {
            const Pair pair = unixPair();
            EXPECT_TRUE(FdTable::find(pair.a)->isPrivate());
            const pid_t child = atOnce([&] {
              const pid_t pid = fork_it();
              if (pid == 0) ::_exit(7);
              return pid;
            });
            EXPECT_FALSE(FdTable::find(pair.a)->isPrivate());
            int status = 0;
            EXPECT_EQ(::waitpid(child, &status, 0), child);
            EXPECT_EQ(WEXITSTATUS(status), 7);
          }};
}
void shutsDown() {
  const Pair pair = unixPair();
  const Peer reader([&] {
    char byte;
    EXPECT_EQ(::recv(pair.a, &byte, 1, 0), 0);
  });
  EXPECT_EQ(atOnce([&] { return ::shutdown(pair.a, SHUT_RD); }), 0);
}

/// Those who wait for a queue hear of its end.
void closesQueue() {
  MessageQueue queue;
  {
    const Peer receiver([fd = queue.fd] {
      char bytes[8];
      EXPECT_TRUE(!inAFiber() || ::mq_receive(fd, bytes, sizeof bytes, nullptr) == -1);
      EXPECT_TRUE(!inAFiber() || errno == EBADF);
    });
    if (inAFiber()) Fiber::YieldToReady();
    EXPECT_EQ(::mq_close(std::exchange(queue.fd, -1)), 0);
  }
}

/// A recursive mutex of another fiber of this thread, which libc takes for the thread's.
void triesToLock() {
  pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  Event held, let_go;
  {
    const Peer holder([&] {
      EXPECT_EQ(::pthread_mutex_lock(&mutex), 0);
      held.set();
      let_go.wait();
      EXPECT_EQ(::pthread_mutex_unlock(&mutex), 0);
    });
    held.wait();
    EXPECT_EQ(atOnce([&] { return ::pthread_mutex_trylock(&mutex); }), EBUSY);
    let_go.set();
  }
  EXPECT_EQ(atOnce([&] { return ::pthread_mutex_trylock(&mutex); }), 0);
  EXPECT_EQ(::pthread_mutex_unlock(&mutex), 0);
}
void unlocksForAnother() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Event comes;
  EXPECT_EQ(::pthread_mutex_lock(&mutex), 0);
  const Peer next([&] {
    comes.set();
    EXPECT_EQ(::pthread_mutex_lock(&mutex), 0);
    EXPECT_EQ(::pthread_mutex_unlock(&mutex), 0);
  });
  comes.wait();
  EXPECT_EQ(atOnce([&] { return ::pthread_mutex_unlock(&mutex); }), 0);
}
NeverWaits tells(const char* name, int (*tell)(pthread_cond_t* changed)) {
  return {name, [tell] {
            Condition condition;
            Event comes;
            const Peer waiter([&] {
              EXPECT_EQ(::pthread_mutex_lock(&condition.mutex), 0);
              comes.set();
              while (!condition.is_true) EXPECT_EQ(::pthread_cond_wait(&condition.changed, &condition.mutex), 0);
              EXPECT_EQ(::pthread_mutex_unlock(&condition.mutex), 0);
            });
            comes.wait();
            condition.makeTrue([&](pthread_cond_t* changed) { return atOnce([&] { return tell(changed); }); });
          }};
}

std::vector<NeverWaits> uncountedCalls() {
  return {
      creates("socket", [] { return ::socket(AF_INET, SOCK_STREAM, 0); }),
      createsPipe("socketpair", [](int* ends) { return ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends); }),
      createsPipe("pipe", &::pipe),
      createsPipe("pipe2", [](int* ends) { return ::pipe2(ends, O_CLOEXEC); }),
      creates("eventfd", [] { return ::eventfd(0, 0); }),
      creates("timerfd_create", [] { return ::timerfd_create(CLOCK_MONOTONIC, 0); }),
      creates("signalfd",
              [] {
                sigset_t none;
                ::sigemptyset(&none);
                return ::signalfd(-1, &none, 0);
              }),
      creates("inotify_init", &::inotify_init),
      creates("inotify_init1", [] { return ::inotify_init1(IN_CLOEXEC); }),
      copies("dup", [](int fd, int) { return ::dup(fd); }),
      copies("dup2", &::dup2),
      copies("dup3", [](int fd, int target) { return ::dup3(fd, target, O_CLOEXEC); }),
      closesAll("close_range",
                [](int first) { EXPECT_EQ(::close_range(static_cast<unsigned>(first), static_cast<unsigned>(first), 0), 0); }),
      closesAll("closefrom", &::closefrom),
      forks("fork", &::fork),
      forks("vfork", &::vfork),  // which is a fork: it may return from where it is called
      {"shutdown", shutsDown},
      {"mq_close", closesQueue},
      {"pthread_mutex_trylock", triesToLock},
      {"pthread_mutex_unlock", unlocksForAnother},
      tells("pthread_cond_signal", &::pthread_cond_signal),
      tells("pthread_cond_broadcast", &::pthread_cond_broadcast),
  };
}

std::string nameOf(const testing::TestParamInfo<Waits>& one) {
  std::string name = one.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

uint64_t callsAndParks() {
  uint64_t sum = 0;
  for (const HookStats& one : hookStats()) sum += one.calls + one.parks;
  return sum;
}
HookStats countsOf(std::string_view name) {
  for (const HookStats& one : hookStats()) {
    if (one.name == name) return one;
  }
  return {.name = ""};
}

class CallThatWaits : public testing::TestWithParam<Waits> {};

// HA-8
TEST_P(CallThatWaits, SuspendsItsFiber) {
  const HookStats before = countsOf(GetParam().counted_as);
  VirtualTime time;
  time.run(GetParam().call);
  const HookStats after = countsOf(GetParam().counted_as);
  EXPECT_GT(after.calls, before.calls);
  EXPECT_GT(after.parks, before.parks);
}

// HA-8
TEST_P(CallThatWaits, PassesThroughOnAThread) {
#ifdef SYLAR_TSAN
  if (GetParam().name == "pthread_mutex_clocklock") GTEST_SKIP() << "ThreadSanitizer does not see that it locks";
#endif
  const uint64_t before = callsAndParks();
  GetParam().call();
  EXPECT_EQ(callsAndParks(), before);
}

INSTANTIATE_TEST_SUITE_P(Of, CallThatWaits, testing::ValuesIn(waitingCalls()), nameOf);

class CallThatNeverWaits : public testing::TestWithParam<NeverWaits> {};

/// Returns where the object begins that contains `address`.
const void* objectOf(const void* address) {
  Dl_info info{};
  EXPECT_NE(::dladdr(address, &info), 0);
  return info.dli_fbase;
}

// HA-8
TEST_P(CallThatNeverWaits, SuspendsNoFiber) {
  const void* const hooks = objectOf(reinterpret_cast<void*>(&::connect_with_timeout));
  ASSERT_EQ(objectOf(::dlsym(RTLD_DEFAULT, GetParam().name.c_str())), hooks);
  inFiber(GetParam().call);
}

// HA-8
TEST_P(CallThatNeverWaits, PassesThroughOnAThread) {
  const uint64_t before = callsAndParks();
  GetParam().call();
  EXPECT_EQ(callsAndParks(), before);
}

INSTANTIATE_TEST_SUITE_P(Of, CallThatNeverWaits, testing::ValuesIn(uncountedCalls()),
                         [](const auto& one) { return one.param.name; });

/// Those without which a fiber library is wrong with ordinary clients.
constexpr char kMust[] = R"(
  read readv pread pread64 preadv preadv2 preadv64 preadv64v2 recv recvfrom recvmsg recvmmsg
  __read_chk __recv_chk __recvfrom_chk __pread_chk __pread64_chk __read
  write writev pwrite pwrite64 pwritev pwritev2 pwritev64 pwritev64v2 __write
  send sendto sendmsg sendmmsg sendfile sendfile64 __send
  connect accept accept4 __connect
  poll ppoll select pselect epoll_wait epoll_pwait epoll_pwait2 __poll __poll_chk __ppoll_chk __select
  sleep usleep nanosleep clock_nanosleep thrd_sleep __nanosleep
  getaddrinfo getnameinfo gethostbyname gethostbyname2 gethostbyaddr gethostbyname_r gethostbyname2_r gethostbyaddr_r
  close __close dup dup2 dup3 fclose freopen pclose shutdown close_range closefrom fork vfork
  socket socketpair pipe pipe2 open open64 openat openat64 creat creat64 eventfd timerfd_create signalfd inotify_init inotify_init1
  pthread_mutex_lock pthread_mutex_trylock pthread_mutex_timedlock pthread_mutex_clocklock pthread_mutex_unlock
  pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_cond_signal pthread_cond_broadcast pthread_once
  mq_receive mq_timedreceive mq_send mq_timedsend mq_close msgrcv msgsnd semop semtimedop
  aio_suspend aio_suspend64 lio_listio lio_listio64
  syscall)";

// HA-8
TEST(HookCoverage, LeavesNoneOut) {
  std::set<std::string> tested;
  for (const Waits& one : waitingCalls()) tested.insert(one.name.substr(0, one.name.find(' ')));
  for (const NeverWaits& one : uncountedCalls()) EXPECT_TRUE(tested.insert(one.name).second) << one.name;
#ifndef __x86_64__
  tested.insert("syscall");  // there it is libc's
#endif
  std::istringstream names(kMust);
  EXPECT_EQ(tested, std::set<std::string>(std::istream_iterator<std::string>(names), {}));
}

}  // namespace
}  // namespace sylar::test::coverage
