// Yardstick: the echo server that one writes by hand on io_uring. One thread, nothing allocated per request.
//
//   raw_uring_echo [--buffer BYTES]
//
// A one-shot receive a request. The answer and the next receive go in as a linked pair, so a request is one completion; a send
// that fails cancels the receive behind it. All that is ready is served before the next call into the kernel.
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/support/loopback.h"

namespace {

using bench::die;

class EchoServer {
 public:
  explicit EchoServer(size_t buffer_bytes);
  [[noreturn]] void run();

 private:
  static constexpr unsigned kEntries = 4096;
  // What a completion is about: a descriptor, or one of these.
  static constexpr uint64_t kAccept = ~uint64_t{0};
  static constexpr uint64_t kSend = ~uint64_t{1};  // comes only if it fails; its receive comes, too

  io_uring_sqe* entry(unsigned links);
  void acceptNext();
  void accepted(int fd);
  void receive(io_uring_sqe* sqe, int fd);
  void received(int fd, int size);

  const size_t m_buffer_bytes;
  io_uring m_ring;
  int m_listener;
  std::vector<std::unique_ptr<char[]>> m_buffers;  ///< by descriptor
};

EchoServer::EchoServer(size_t buffer_bytes) : m_buffer_bytes(buffer_bytes) {
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
      } else if (cqe->user_data != kSend) {
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
  if (size <= 0) {
    m_buffers[fd].reset();
    close(fd);
    return;
  }
  io_uring_sqe* sqe = entry(2);
  io_uring_prep_send(sqe, fd, m_buffers[fd].get(), size, MSG_NOSIGNAL | MSG_WAITALL);  // WAITALL: the kernel sends the rest
  io_uring_sqe_set_data64(sqe, kSend);
  sqe->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
  receive(io_uring_get_sqe(&m_ring), fd);
}

}  // namespace

int main(int argc, char** argv) {
  size_t buffer_bytes = 4096;
  if (argc == 3 && std::strcmp(argv[1], "--buffer") == 0) {
    buffer_bytes = std::strtoul(argv[2], nullptr, 10);
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: raw_uring_echo [--buffer BYTES]\n");
    return 2;
  }
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { _exit(0); });
  bench::raiseFileLimit();
  EchoServer(buffer_bytes).run();
}
