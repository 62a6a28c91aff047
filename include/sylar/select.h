// Everything that select() can wait for: sylar/sync/select.h, and descriptors.
//
//   sylar::select(sylar::onReadable(socket, [&] { readMore(socket); }),
//                 sylar::onReceive(answers, [&](std::optional<Answer> answer) { send(socket, *answer); }));
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "sylar/sync/select.h"

namespace sylar {

namespace detail {

/// One descriptor and direction.
class DescriptorCase : public SelectCase {
 public:
  enum class Wants : uint8_t { kReadable, kWritable, kHangUp };  ///< kHangUp: what PeerScope waits for
  DescriptorCase(int fd, Wants what);
  ~DescriptorCase();

  const void* place() const override;
  bool tryNow() override;
  bool enqueue(SyncWait& wait) override;
  void dequeue() override;
  bool isDone() const override { return false; }  // tryNow() will say it

 private:
  struct Watched;
  const std::unique_ptr<Watched> m_watched;
};

}  // namespace detail

/// Calls `function` when a read from `fd` would not wait: there is data, or the end of it, or an error, or `fd` is not open (any
/// more). Throws, from select(), std::logic_error if that would have to wait and the caller is no fiber of an IOManager, and
/// std::system_error if the descriptor cannot be waited for.
template <class Function>
auto onReadable(int fd, Function&& function) {
  using Case = detail::DescriptorCase;
  return detail::PlainCase<Case, Function>(std::forward<Function>(function), fd, Case::Wants::kReadable);
}
/// Calls `function` when a write to `fd` would not wait, or would fail. Otherwise as onReadable().
template <class Function>
auto onWritable(int fd, Function&& function) {
  using Case = detail::DescriptorCase;
  return detail::PlainCase<Case, Function>(std::forward<Function>(function), fd, Case::Wants::kWritable);
}

}  // namespace sylar
