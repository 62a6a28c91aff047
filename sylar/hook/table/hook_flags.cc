// Calls that set flags and timeouts; they keep the table of descriptors correct, on every thread, in and out of fibers. Source:
// fcntl(2), ioctl(2), setsockopt(2).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>

#include <cstdarg>

#include "sylar/hook/core/attempt.h"
#include "sylar/hook/core/linger.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/file/file_lock.h"
#include "sylar/hook/table/duplicate.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {
namespace {

// The names of these options for 64-bit times. Where a long has 64 bits the value is a timeval as well.
constexpr int kReceiveTimeoutNew = 66;  // SO_RCVTIMEO_NEW
constexpr int kSendTimeoutNew = 67;     // SO_SNDTIMEO_NEW
static_assert(sizeof(timeval) == 2 * sizeof(int64_t));

constexpr int kTimestampingNew = 65;  // SO_TIMESTAMPING_NEW
/// Returns true if `option` has the kernel put reports into the socket's error queue. They wake each wait for bytes until somebody
/// reads them.
constexpr bool reportsAsErrors(int option) {
  return option == SO_TIMESTAMPING || option == kTimestampingNew || option == SO_ZEROCOPY;
}

int64_t timeoutNs(const void* value) { return attempt::toNs(*static_cast<const timeval*>(value)); }

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);  // an int comes in the same register
  va_end(arguments);
  if (command == F_SETLKW || command == F_OFD_SETLKW) return lockRecord(fd, command, argument);
  const int result = real::fcntl(fd, command, argument);
  if (result == -1) return result;
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return duplicated(fd, result);
  if (command == F_SETFL) {
    if (Entry* entry = FdTable::find(fd)) entry->setNonblocking((reinterpret_cast<intptr_t>(argument) & O_NONBLOCK) != 0);
  }
  return result;
}
int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
int __fcntl(int fd, int command, ...) __attribute__((alias("fcntl")));

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const int result = real::ioctl(fd, request, argument);
  if (result != -1 && request == FIONBIO) {
    if (Entry* entry = FdTable::find(fd)) entry->setNonblocking(*static_cast<const int*>(argument) != 0);
  }
  return result;
}

int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept {
  const int result = real::setsockopt(fd, level, option, value, size);
  if (result != 0) return result;
  Entry* const entry = FdTable::find(fd);
  if (level == SOL_SOCKET && option == SO_LINGER && lingers(*static_cast<const linger*>(value))) {
    if (!g_any_lingers.exchange(true) && !Entry::interrupting()) {  // rings let go of all files
      FdTable::forEach([](int, Entry& each) { each.wakeAll(Direction::kRead, true); });
    }
  }
  if (entry == nullptr) return result;
  const bool receives = option == SO_RCVTIMEO || option == kReceiveTimeoutNew;
  const bool sends = option == SO_SNDTIMEO || option == kSendTimeoutNew;
  if (level == SOL_SOCKET && receives) entry->setTimeoutNs(Direction::kRead, timeoutNs(value));
  if (level == SOL_SOCKET && sends) entry->setTimeoutNs(Direction::kWrite, timeoutNs(value));
  // It is learned again, with the mark, and as a stream whose transfers are not the ring's.
  if (level == SOL_SOCKET && (option == SO_RCVLOWAT || reportsAsErrors(option))) entry->setKind(FdKind::kUnknown);
  if (level == IPPROTO_TCP && option == TCP_ULP) entry->setKind(FdKind::kStream);  // records, so short reads prove nothing
  return result;
}

}  // extern "C"
