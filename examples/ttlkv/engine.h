// The Engine is the server without its sockets: it executes requests on the keys.
//
// Thread safety: all calls from any thread; those that name a session, from its fiber.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "expirer.h"
#include "hub.h"
#include "keyspace.h"
#include "options.h"
#include "outbox.h"
#include "sylar/thread_mutex.h"
#include "wall_clock.h"

namespace ttlkv {

/// The state of one connection, as far as commands see it.
struct Session {
  uint64_t id = 0;
  std::string name;                        // CLIENT SETNAME
  std::string address;                     // of the client
  bool ends = false;                       // the connection is closed when its replies are sent
  std::function<Outbox&()> outbox;         // makes the outbox of the connection when it subscribes
  std::unique_ptr<Subscriber> subscriber;  // made by the first subscription
  bool isSubscribed() const { return subscriber != nullptr && subscriber->count() > 0; }
};

class Engine final : private ShardObserver {
 public:
  /// `clock` must outlive the engine.
  Engine(const WallClock& clock, Options options);

  /// Executes one request, which is not empty, and appends its reply. May suspend: yes, for SAVE.
  void execute(Session& session, std::span<const std::string_view> args, std::string& out);
  /// Must be called at the end of a session that has subscribed.
  void forget(Session& session);

  /// Loads the snapshot if there is one, and returns the number of keys. Throws as loadSnapshot() does. Blocks the thread.
  size_t load();
  /// Writes the snapshot, after another call has ended. Throws as writeSnapshot() does, and std::runtime_error if the service has
  /// no file for it. Blocks the thread.
  void save();
  bool isSaving() const { return m_is_saving.load(std::memory_order_relaxed); }

  /// Takes new values of the live settings.
  void setLive(const Options::Live& live);
  Options::Live live() const;
  const Options& options() const { return m_options; }

  Keyspace& keyspace() { return m_keyspace; }
  Expirer& expirer() { return m_expirer; }
  Hub& hub() { return m_hub; }

  // Counts of the service, for INFO.
  std::atomic<uint64_t> commands{0}, connections{0}, refused_connections{0}, protocol_errors{0}, idle_closed{0};
  std::atomic<size_t> clients{0};
  std::atomic<int64_t> last_save_s{0};
  std::atomic<bool> last_save_ok{true};
  std::atomic<bool> saves_at_end{true};  // false after SHUTDOWN NOSAVE
  const int64_t started_ms;

 private:
  void onExpired(std::string_view key) override;
  void onEarliestChanged(size_t shard) override { m_expirer.update(shard); }

  const Options m_options;
  std::atomic<size_t> m_max_memory;
  std::atomic<Victims> m_victims;
  std::atomic<uint32_t> m_notifications;
  std::atomic<size_t> m_max_clients;
  Hub m_hub;
  Keyspace m_keyspace;
  Expirer m_expirer;
  sylar::ThreadMutex m_saving;  // lets one snapshot be written at a time
  std::atomic<bool> m_is_saving{false};
};

}  // namespace ttlkv
