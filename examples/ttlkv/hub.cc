#include "hub.h"

#include "glob.h"
#include "reply.h"

namespace ttlkv {

bool Hub::subscribe(Subscriber& subscriber, Kind kind, std::string_view name) {
  auto& names = kind == kChannel ? subscriber.channels : subscriber.patterns;
  if (!names.emplace(name).second) return false;
  const sylar::ThreadMutex::Lock lock(m_mutex);
  listeners(kind)[std::string(name)].insert(&subscriber);
  ++m_subscriptions;
  return true;
}

bool Hub::unsubscribe(Subscriber& subscriber, Kind kind, std::string_view name) {
  auto& names = kind == kChannel ? subscriber.channels : subscriber.patterns;
  const auto found = names.find(name);
  if (found == names.end()) return false;
  names.erase(found);
  const sylar::ThreadMutex::Lock lock(m_mutex);
  remove(kind, subscriber, name);
  return true;
}

void Hub::forget(Subscriber& subscriber) {
  const sylar::ThreadMutex::Lock lock(m_mutex);
  for (const std::string& name : subscriber.channels) remove(kChannel, subscriber, name);
  for (const std::string& name : subscriber.patterns) remove(kPattern, subscriber, name);
  subscriber.channels.clear();
  subscriber.patterns.clear();
}

void Hub::remove(Kind kind, Subscriber& subscriber, std::string_view name) {
  const auto found = listeners(kind).find(name);
  found->second.erase(&subscriber);
  if (found->second.empty()) listeners(kind).erase(found);
  --m_subscriptions;
}

int64_t Hub::publish(std::string_view channel, std::string_view message) {
  if (m_subscriptions == 0) return 0;
  int64_t sent = 0;
  const sylar::ThreadMutex::Lock lock(m_mutex);
  if (const auto found = m_channels.find(channel); found != m_channels.end()) {
    std::string bytes;
    reply::array(bytes, 3);
    reply::bulk(bytes, "message");
    reply::bulk(bytes, channel);
    reply::bulk(bytes, message);
    for (Subscriber* const each : found->second) each->outbox.append(bytes);
    sent += static_cast<int64_t>(found->second.size());
  }
  for (const auto& [pattern, subscribers] : m_patterns) {
    if (!globMatches(pattern, channel)) continue;
    std::string bytes;
    reply::array(bytes, 4);
    reply::bulk(bytes, "pmessage");
    reply::bulk(bytes, pattern);
    reply::bulk(bytes, channel);
    reply::bulk(bytes, message);
    for (Subscriber* const each : subscribers) each->outbox.append(bytes);
    sent += static_cast<int64_t>(subscribers.size());
  }
  return sent;
}

size_t Hub::channels() const {
  const sylar::ThreadMutex::Lock lock(m_mutex);
  return m_channels.size();
}

size_t Hub::patterns() const {
  const sylar::ThreadMutex::Lock lock(m_mutex);
  return m_patterns.size();
}

}  // namespace ttlkv
