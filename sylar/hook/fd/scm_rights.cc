// Source: unix(7), cmsg(3).
#include "sylar/hook/fd/scm_rights.h"

#include <cstring>

#include "sylar/hook/core/probe.h"
#include "sylar/io/fd_table.h"

namespace sylar::detail {
namespace {

template <class Visit>
void forEachRight(const msghdr& message, Visit visit) {
  msghdr* const header = const_cast<msghdr*>(&message);  // CMSG_NXTHDR does not take a const one
  for (cmsghdr* one = CMSG_FIRSTHDR(header); one != nullptr; one = CMSG_NXTHDR(header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS || one->cmsg_len < CMSG_LEN(0)) continue;
    for (size_t i = 0; i < (one->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
      visit(fd);
    }
  }
}

}  // namespace

void rightsSent(const msghdr& message) {
  forEachRight(message, [](int fd) {
    if (Entry* entry = FdTable::find(fd)) entry->share();
  });
}

void rightsReceived(const msghdr& message) {
  forEachRight(message, [](int fd) { FdTable::opened(fd, FdKind::kUnknown, false, false); });
}

bool endsWithRights(int fd, const msghdr& message) {
  bool any = false;
  forEachRight(message, [&any](int) { any = true; });
  // With SO_PASSCRED there is always something for which there is no room, so MSG_CTRUNC proves nothing.
  return any || ((message.msg_flags & MSG_CTRUNC) != 0 && probe::socketOption(fd, SO_PASSCRED) != 1);
}

}  // namespace sylar::detail
