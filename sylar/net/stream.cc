#include "sylar/stream.h"

#include <cerrno>
#include <climits>

namespace sylar {
namespace {

/// Calls `transfer(offset)` until `length` bytes have been transferred.
template <class Transfer>
int transferAll(size_t length, Transfer transfer) {
  if (length > INT_MAX) {
    errno = EINVAL;
    return -1;
  }
  for (size_t done = 0; done < length;) {
    const int n = transfer(done);
    if (n <= 0) return n;
    done += static_cast<size_t>(n);
  }
  return static_cast<int>(length);
}

}  // namespace

int Stream::readFixSize(void* buffer, size_t length) {
  return transferAll(length, [=, this](size_t done) { return read(static_cast<char*>(buffer) + done, length - done); });
}

int Stream::writeFixSize(const void* buffer, size_t length) {
  return transferAll(length, [=, this](size_t done) { return write(static_cast<const char*>(buffer) + done, length - done); });
}

}  // namespace sylar
