// Yardstick: the echo server that one writes by hand on io_uring. One thread, nothing allocated per request.
//
//   raw_uring_echo [--buffer BYTES] [--send linked|apart|direct]
//
// A one-shot receive a request. All that is ready is served before the next call into the kernel. The answer is sent in one of
// three ways, of which only the last two are open to a library whose user calls `send` and wants its result:
//
// linked  The answer and the next receive go in as a linked pair, so a request is one completion; a send that fails cancels the
//         receive behind it. The default.
// apart   The answer goes in alone, and its completion brings the next receive.
// direct  The answer is sent by a system call of its own.
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/support/loopback.h"

namespace {

using bench::die;

enum class Send { kLinked, kApart, kDirect };

class EchoServer {
 public:
  EchoServer(size_t buffer_bytes, Send send);
  [[noreturn]] void run();

 private:
  static constexpr unsigned kEntries = 4096;
  // A completion is of a descriptor's receive, of its send if kSent is set, or of one of the others.
  static constexpr uint64_t kSent = uint64_t{1} << 32;
  static constexpr uint64_t kAccept = ~uint64_t{0};
  static constexpr uint64_t kLinkedSend = ~uint64_t{1};  // comes only if it fails; its receive comes, too

  io_uring_sqe* entry(unsigned links);
  void acceptNext();
  void accepted(int fd);
  void receive(io_uring_sqe* sqe, int fd);
  void received(int fd, int size);
  void sent(int fd, bool all);
  void drop(int fd);

  const size_t m_buffer_bytes;
  const Send m_send;
  io_uring m_ring;
  int m_listener;
  std::vector<std::unique_ptr<char[]>> m_buffers;  ///< by descriptor
};

EchoServer::EchoServer(size_t buffer_bytes, Send send) : m_buffer_bytes(buffer_bytes), m_send(send) {
  io_uring_params params = {};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_CQSIZE;
  params.cq_entries = 4 * kEntries;
  if (const int status = io_uring_queue_init_params(kEntries, &m_ring, &params); status < 0) {
    errno = -status;
    die("io_uring_queue_init");
  }
  m_listener = bench::listenOn(0, 0);
  acceptNext();
}

/// Room for `links` entries that belong together.
io_uring_sqe* EchoServer::entry(unsigned links) {
  if (io_uring_sq_space_left(&m_ring) < links) io_uring_submit(&m_ring);
  return io_uring_get_sqe(&m_ring);
}

void EchoServer::acceptNext() {
  io_uring_sqe* sqe = entry(1);
  io_uring_prep_multishot_accept(sqe, m_listener, nullptr, nullptr, SOCK_CLOEXEC);
  io_uring_sqe_set_data64(sqe, kAccept);
}

void EchoServer::accepted(int fd) {
  if (m_buffers.size() <= static_cast<size_t>(fd)) m_buffers.resize(fd + 1);
  m_buffers[fd] = std::make_unique<char[]>(m_buffer_bytes);
  receive(entry(1), fd);
}

void EchoServer::run() {
  for (;;) {
    const int status = io_uring_submit_and_wait(&m_ring, 1);
    if (status < 0 && status != -EINTR) die("io_uring_submit_and_wait");
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&m_ring, head, cqe) {
      ++count;
      if (cqe->user_data == kAccept) {
        if (cqe->res >= 0) accepted(cqe->res);
        if ((cqe->flags & IORING_CQE_F_MORE) == 0) acceptNext();
      } else if (cqe->user_data == kLinkedSend) {
        continue;
      } else if ((cqe->user_data & kSent) != 0) {
        sent(static_cast<int>(cqe->user_data), cqe->res > 0);
      } else {
        received(static_cast<int>(cqe->user_data), cqe->res);
      }
    }
    io_uring_cq_advance(&m_ring, count);
  }
}

void EchoServer::receive(io_uring_sqe* sqe, int fd) {
  io_uring_prep_recv(sqe, fd, m_buffers[fd].get(), m_buffer_bytes, 0);
  io_uring_sqe_set_data64(sqe, static_cast<uint64_t>(fd));
}

void EchoServer::received(int fd, int size) {
  if (size <= 0) return drop(fd);
  if (m_send == Send::kDirect) return sent(fd, send(fd, m_buffers[fd].get(), size, MSG_NOSIGNAL) == size);
  io_uring_sqe* sqe = entry(2);
  io_uring_prep_send(sqe, fd, m_buffers[fd].get(), size, MSG_NOSIGNAL | MSG_WAITALL);  // WAITALL: the kernel sends the rest
  io_uring_sqe_set_data64(sqe, m_send == Send::kLinked ? kLinkedSend : kSent | static_cast<uint64_t>(fd));
  if (m_send == Send::kApart) return;
  sqe->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
  receive(io_uring_get_sqe(&m_ring), fd);
}

void EchoServer::sent(int fd, bool all) { all ? receive(entry(1), fd) : drop(fd); }

void EchoServer::drop(int fd) {
  m_buffers[fd].reset();
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  size_t buffer_bytes = 4096;
  Send send = Send::kLinked;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--buffer" && !value.empty()) {
      buffer_bytes = std::strtoul(argv[i + 1], nullptr, 10);
    } else if (option == "--send" && (value == "linked" || value == "apart" || value == "direct")) {
      send = value == "linked" ? Send::kLinked : value == "apart" ? Send::kApart : Send::kDirect;
    } else {
      std::fprintf(stderr, "usage: raw_uring_echo [--buffer BYTES] [--send linked|apart|direct]\n");
      return 2;
    }
  }
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { _exit(0); });
  bench::raiseFileLimit();
  EchoServer(buffer_bytes, send).run();
}
