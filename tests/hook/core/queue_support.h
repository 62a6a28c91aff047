// For tests: message queues, semaphores and asynchronous reads that are gone with their scope.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "tests/hook/support.h"

namespace sylar::test {

/// A queue of POSIX for `most` messages of eight bytes.
class MessageQueue {
 public:
  explicit MessageQueue(int flags = 0, long most = 2) {
    static std::atomic<int> count{0};
    mq_attr size{};
    size.mq_maxmsg = most;
    size.mq_msgsize = 8;
    const std::string name = "/sylar-" + std::to_string(::getpid()) + '-' + std::to_string(count.fetch_add(1));
    fd = ::mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600, &size);
    EXPECT_GE(fd, 0);
    ::mq_unlink(name.c_str());
  }
  ~MessageQueue() {
    if (fd >= 0) ::mq_close(fd);
  }
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;
  mqd_t fd;
};

struct SystemMessage {
  long type = 1;
  char text[8] = "-------";
};

/// A queue of System V that holds 16 bytes.
class SystemQueue {
 public:
  SystemQueue() {
    EXPECT_GE(id, 0);
    msqid_ds state;
    EXPECT_EQ(::msgctl(id, IPC_STAT, &state), 0);
    state.msg_qbytes = 16;
    EXPECT_EQ(::msgctl(id, IPC_SET, &state), 0);
  }
  ~SystemQueue() { remove(); }
  SystemQueue(const SystemQueue&) = delete;
  SystemQueue& operator=(const SystemQueue&) = delete;
  void remove() { ::msgctl(id, IPC_RMID, nullptr); }
  int send(const Calls& call, long type, const std::string& text, int flags = 0) const {
    SystemMessage message{.type = type};
    text.copy(message.text, sizeof message.text - 1);
    return call.msgsnd(id, &message, sizeof message.text, flags);
  }
  ssize_t receive(const Calls& call, long type = 0, int flags = 0) const {
    SystemMessage message;
    return call.msgrcv(id, &message, sizeof message.text, type, flags);
  }
  const int id = ::msgget(IPC_PRIVATE, 0600);
};

/// Three semaphores of System V.
class Semaphores {
 public:
  Semaphores() { EXPECT_GE(id, 0); }
  ~Semaphores() { remove(); }
  Semaphores(const Semaphores&) = delete;
  Semaphores& operator=(const Semaphores&) = delete;
  void remove() { ::semctl(id, 0, IPC_RMID); }
  int op(const Calls& call, std::vector<sembuf> all, const timespec* timeout = nullptr) const {
    return timeout == nullptr ? call.semop(id, all.data(), all.size()) : call.semtimedop(id, all.data(), all.size(), timeout);
  }
  int value(int number) const { return ::semctl(id, number, GETVAL); }
  /// Returns how many threads the kernel knows to wait for zero.
  int waitersForZero(int number) const { return ::semctl(id, number, GETZCNT); }
  const int id = ::semget(IPC_PRIVATE, 3, 0600);
};
inline sembuf add(unsigned short number, short value, short flags = 0) { return {number, value, flags}; }

inline aiocb request(int fd, char* to, size_t size, int what = LIO_READ) {
  aiocb one{};
  one.aio_fildes = fd;
  one.aio_buf = to;
  one.aio_nbytes = size;
  one.aio_lio_opcode = what;
  one.aio_sigevent.sigev_notify = SIGEV_NONE;
  return one;
}

}  // namespace sylar::test
