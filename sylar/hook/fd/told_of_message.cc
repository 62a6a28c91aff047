#include "sylar/hook/fd/told_of_message.h"

#include <algorithm>
#include <cerrno>

#include "sylar/hook/core/probe.h"

namespace sylar::detail {

long tellSender(const sockaddr_storage& sender, socklen_t size, sockaddr* from, socklen_t* from_size) {
  int room;
  if (!probe::copyIn(&room, from_size, sizeof room)) return -EFAULT;
  if (room < 0) return -EINVAL;
  const size_t told = std::min(static_cast<size_t>(room), static_cast<size_t>(size));
  const bool written = (told == 0 || probe::copyOut(from, &sender, told)) && probe::copyOut(from_size, &size, sizeof size);
  return written ? 0 : -EFAULT;
}

long tellEnd(msghdr* message, int flags) {
  msghdr none;
  if (!probe::copyIn(&none, message, sizeof none)) return -EFAULT;
  none.msg_namelen = 0;
  none.msg_controllen = 0;
  none.msg_flags = flags & MSG_CMSG_CLOEXEC;
  return probe::copyOut(message, &none, sizeof none) ? 0 : -EFAULT;
}

long tellEnd(mmsghdr* message, int flags) {
  const unsigned bytes = 0;
  const bool written = probe::copyOut(&message->msg_len, &bytes, sizeof bytes);
  return written ? tellEnd(&message->msg_hdr, flags) : -EFAULT;
}

}  // namespace sylar::detail
