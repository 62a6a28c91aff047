#include "sylar/tls/socket_bio.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "sylar/hook/core/real.h"

namespace sylar::detail {
namespace {

SocketWire& wireOf(BIO* bio) { return *static_cast<SocketWire*>(::BIO_get_data(bio)); }

bool isTransient(int error) { return error == EAGAIN || error == EINTR; }

int read(BIO* bio, char* buffer, int size) {
  ::BIO_clear_retry_flags(bio);
  const auto count = static_cast<int>(real::recv(wireOf(bio).fd, buffer, static_cast<size_t>(std::max(size, 0)), MSG_DONTWAIT));
  if (count < 0 && isTransient(errno)) ::BIO_set_retry_read(bio);
  if (count != 0 || size <= 0) return count;
  if (!wireOf(bio).reads_ended.load(std::memory_order_acquire)) {
    wireOf(bio).has_ended = true;
    return 0;
  }
  ::BIO_set_retry_read(bio);
  return -1;
}

int write(BIO* bio, const char* bytes, int size) {
  ::BIO_clear_retry_flags(bio);
  const auto count =
      static_cast<int>(real::send(wireOf(bio).fd, bytes, static_cast<size_t>(std::max(size, 0)), MSG_DONTWAIT | MSG_NOSIGNAL));
  if (count < 0 && isTransient(errno)) ::BIO_set_retry_write(bio);
  return count;
}

long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  switch (command) {
    case BIO_CTRL_EOF: return wireOf(bio).has_ended ? 1 : 0;
    case BIO_CTRL_FLUSH: return 1;
    default: return 0;
  }
}

/// Returns the kind, which lasts as long as the process, or null.
BIO_METHOD* kind() {
  static BIO_METHOD* const s_kind = [] {
    BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "sylar socket");
    if (made != nullptr) {
      ::BIO_meth_set_read(made, read);
      ::BIO_meth_set_write(made, write);
      ::BIO_meth_set_ctrl(made, control);
    }
    return made;
  }();
  return s_kind;
}

}  // namespace

BIO* makeSocketBio(SocketWire& wire) {
  BIO* const bio = kind() == nullptr ? nullptr : ::BIO_new(kind());
  if (bio == nullptr) return nullptr;
  ::BIO_set_data(bio, &wire);
  ::BIO_set_init(bio, 1);
  return bio;
}

}  // namespace sylar::detail
