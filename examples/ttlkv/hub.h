// The Hub keeps the subscriptions of all clients, and hands out messages.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "outbox.h"
#include "sylar/thread_mutex.h"

namespace ttlkv {

/// The subscriptions of one client. Only the fiber of its connection uses the names.
struct Subscriber {
  explicit Subscriber(Outbox& its_outbox) : outbox(its_outbox) {}
  Outbox& outbox;
  std::set<std::string, std::less<>> channels, patterns;

  size_t count() const { return channels.size() + patterns.size(); }
};

class Hub {
 public:
  enum Kind { kChannel, kPattern };

  /// Adds or removes a subscription, and returns whether that changed anything.
  bool subscribe(Subscriber& subscriber, Kind kind, std::string_view name);
  bool unsubscribe(Subscriber& subscriber, Kind kind, std::string_view name);
  /// Removes all subscriptions of a client. It gets no message afterwards.
  void forget(Subscriber& subscriber);

  /// Sends a message to the subscribers of the channel and of the patterns that match it. Returns the number of messages
  /// sent.
  int64_t publish(std::string_view channel, std::string_view message);

  size_t channels() const;
  size_t patterns() const;

 private:
  using Listeners = std::map<std::string, std::set<Subscriber*>, std::less<>>;
  Listeners& listeners(Kind kind) { return kind == kChannel ? m_channels : m_patterns; }
  void remove(Kind kind, Subscriber& subscriber, std::string_view name);

  mutable sylar::ThreadMutex m_mutex;  // guards the maps
  Listeners m_channels, m_patterns;
  std::atomic<size_t> m_subscriptions{0};  // if there is none, a publisher need not take the lock
};

}  // namespace ttlkv
