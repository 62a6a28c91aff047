// An Outbox has the bytes that wait to be sent to a client that has subscribed.
//
// A connection sends its replies itself. Once it has subscribed, others have messages for it at any time, so then a fiber of its
// own sends replies and messages in the order in which they came. That no publisher ever waits for a slow reader has a price: a
// client whose bytes exceed the limit is disconnected, as Redis does it with client-output-buffer-limit.
//
// Thread safety: all calls from any thread; one fiber takes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sylar/sync/event.h"
#include "sylar/thread_mutex.h"

namespace ttlkv {

class Outbox {
 public:
  /// `on_overflow` is called once, under the caller's locks, so it must not suspend.
  Outbox(size_t max_bytes, std::function<void()> on_overflow);

  /// Adds bytes at the end. Does nothing after close() or an overflow. May suspend: no.
  void append(std::string_view bytes);
  /// Waits for bytes, and moves all of them to `bytes`. Returns false if the box is closed and empty. May suspend: yes.
  bool take(std::string& bytes);
  /// Ends the box. Bytes that were added before are still taken. May suspend: no.
  void close();

 private:
  const size_t m_max_bytes;
  const std::function<void()> m_on_overflow;
  sylar::ThreadMutex m_mutex;  // guards the members below
  std::string m_bytes;
  bool m_closed = false;
  sylar::Event m_ready;  // set while there is something to take, and for good once the box is closed
};

}  // namespace ttlkv
