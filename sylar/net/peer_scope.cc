#include "sylar/peer_scope.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/scheduler.h"
#include "sylar/select.h"

namespace sylar {

PeerScope::PeerScope(const Socket& socket) {
  if (hookEngine() == nullptr) throw std::logic_error("sylar::PeerScope: only in a fiber of an IOManager, with hooks");
  // Made here, while the number is this connection's. Once that is closed, the case does not see the next owner.
  using Case = detail::DescriptorCase;
  using HangUp = detail::PlainCase<Case, std::function<void()>>;
  const auto has_gone = [gone = m_gone]() mutable { gone.request_stop(); };
  const auto hang_up = std::make_shared<HangUp>(has_gone, socket.getSocket(), Case::Wants::kHangUp);
  m_watcher = std::make_shared<Fiber>([hang_up] { select(std::move(*hang_up)); });
  m_watcher->setName("watches a peer");
  m_watcher->setIdentity(FiberIdentity::kWorker);
  m_scope.emplace(m_gone.get_token());
  Scheduler::GetThis()->schedule(m_watcher, sys::threadId());
}

/// The watcher may end later, because it uses nothing of ours.
PeerScope::~PeerScope() { m_watcher->cancel(); }

}  // namespace sylar
