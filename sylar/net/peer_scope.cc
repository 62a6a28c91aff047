#include "sylar/peer_scope.h"

#include <poll.h>

#include <memory>
#include <stdexcept>

#include "sylar/base/sys.h"
#include "sylar/hook/wait_loop.h"
#include "sylar/scheduler.h"

namespace sylar {
namespace {

/// Returns true when the peer of `fd` has gone, and false if the fiber is cancelled before.
bool awaitHangUp(int fd) {
  pollfd one{fd, POLLRDHUP, 0};
  return ::poll(&one, 1, -1) == 1;
}

}  // namespace

PeerScope::PeerScope(const Socket& socket) {
  if (hookEngine() == nullptr) throw std::logic_error("sylar::PeerScope: only in a fiber of an IOManager, with hooks");
  const int fd = socket.getSocket();
  m_watcher = std::make_shared<Fiber>([gone = m_gone, fd]() mutable {
    if (awaitHangUp(fd)) gone.request_stop();
  });
  m_watcher->setName("watches a peer");
  m_scope.emplace(m_gone.get_token());
  Scheduler::GetThis()->schedule(m_watcher, sys::threadId());
}

/// The watcher may end later: it uses nothing of ours, and a poll of a number that was closed does not see the next owner.
PeerScope::~PeerScope() { m_watcher->cancel(); }

}  // namespace sylar
