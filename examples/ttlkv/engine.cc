#include "engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "command.h"
#include "notifications.h"
#include "reply.h"
#include "snapshot.h"

namespace ttlkv {

namespace {

/// Names the command and the first of its arguments, at most 128 bytes of each, as Redis does.
std::string unknownCommand(std::span<const std::string_view> args) {
  std::string with;
  for (size_t i = 1; i < args.size() && with.size() < 128; ++i) {
    with += "'" + reply::printed(args[i], 128 - with.size()) + "' ";
  }
  return "ERR unknown command '" + reply::printed(args[0], 128) + "', with args beginning with: " + with;
}

/// Returns whether the line is that of a browser, which a web page may have told to talk to this port. Redis hangs up as well.
bool isHttp(std::string_view name) { return equalsIgnoringCase(name, "post") || equalsIgnoringCase(name, "host:"); }

}  // namespace

Engine::Engine(const WallClock& clock, Options options)
    : started_ms(clock.nowMs()),
      m_options(std::move(options)),
      m_max_memory(m_options.live.max_memory_bytes),
      m_victims(m_options.live.victims),
      m_notifications(m_options.live.notifications),
      m_max_clients(m_options.live.max_clients),
      m_keyspace(clock, *this, m_options.shards),
      m_expirer(m_keyspace, m_options.expiry_budget) {
  last_save_s = started_ms / 1000;
}

void Engine::execute(Session& session, std::span<const std::string_view> args, std::string& out) {
  const Command* const command = findCommand(args[0]);
  if (command == nullptr && isHttp(args[0])) {
    session.ends = true;
    return;
  }
  if (command == nullptr) return reply::error(out, unknownCommand(args));
  const auto count = static_cast<int>(std::min<size_t>(args.size(), INT32_MAX));
  if (command->arity >= 0 ? count != command->arity : count < -command->arity) return replyWrongArity(out, command->name);
  if ((command->flags & kPubSub) == 0 && session.isSubscribed()) {
    return reply::error(out, "ERR Can't execute '" + std::string(command->name) +
                                 "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context");
  }
  if (const size_t max = m_max_memory.load(std::memory_order_relaxed); max > 0 && (command->flags & kNeedsMemory) != 0) {
    if (!m_keyspace.evictDownTo(max, m_victims)) return reply::error(out, reply::kOutOfMemory);
  }
  Call call{*this, session, *command, args, out};
  command->execute(call);
}

void Engine::forget(Session& session) {
  if (session.subscriber != nullptr) m_hub.forget(*session.subscriber);
}

size_t Engine::load() { return m_options.snapshot_path.empty() ? 0 : loadSnapshot(m_keyspace, m_options.snapshot_path); }

void Engine::save() {
  if (m_options.snapshot_path.empty()) throw std::runtime_error("the setting ttlkv.snapshot names no file");
  const sylar::ThreadMutex::Lock lock(m_saving);
  m_is_saving = true;
  try {
    writeSnapshot(m_keyspace, m_options.snapshot_path);
    last_save_s = m_keyspace.nowMs() / 1000;
    last_save_ok = true;
  } catch (...) {
    last_save_ok = false;
    m_is_saving = false;
    throw;
  }
  m_is_saving = false;
}

void Engine::setLive(const Options::Live& live) {
  m_max_memory = live.max_memory_bytes;
  m_victims = live.victims;
  m_notifications = live.notifications;
  m_max_clients = live.max_clients;
}

Options::Live Engine::live() const { return {m_max_memory, m_victims, m_notifications, m_max_clients}; }

void Engine::onExpired(std::string_view key) {
  const uint32_t set = m_notifications.load(std::memory_order_relaxed);
  if ((set & kExpiredEvents) == 0) return;
  if ((set & kKeyspaceChannels) != 0) m_hub.publish("__keyspace@0__:" + std::string(key), "expired");
  if ((set & kKeyeventChannels) != 0) m_hub.publish("__keyevent@0__:expired", key);
}

}  // namespace ttlkv
