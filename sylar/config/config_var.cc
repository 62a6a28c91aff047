#include "sylar/config/config_var.h"

#include <map>
#include <optional>
#include <vector>

#include "sylar/base/ascii.h"
#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/config/config_registry.h"

namespace sylar {

ConfigVarBase::ConfigVarBase(const std::string& name, const std::string& description, SourceLocation location)
    : m_name(asciiLower(name)), m_description(description), m_location(location) {}

void ConfigVarBase::logFailure(const std::string& what, const std::exception& failure) const {
  log::error("config: {}: {}: {}", m_name, what, detail::reasonOf(failure));
}

struct LoadableVar::State {
  struct Change {
    Value was, is;
  };

  State(OsMutex& lock, Value initial) : mutex(lock), value(initial), told(std::move(initial)) {}

  /// Returns the change that the listeners do not know yet, or nothing if there is none or another call is telling them.
  std::optional<Change> nextChange(bool& mine) {
    const Lock lock(mutex);
    if (telling && !mine) return std::nullopt;
    mine = telling = told != value;
    if (!telling) return std::nullopt;
    return Change{std::exchange(told, value), value};
  }

  std::vector<uint64_t> listenerIds() const {
    std::vector<uint64_t> ids;
    const Lock lock(mutex);
    for (const auto& [id, listener] : listeners) ids.push_back(id);
    return ids;
  }

  OsMutex& mutex;
  Value value SYLAR_GUARDED_BY(mutex);
  Value told SYLAR_GUARDED_BY(mutex);            // the value that the listeners know
  bool telling SYLAR_GUARDED_BY(mutex) = false;  // a call of notify() is telling the listeners
  uint64_t last_id SYLAR_GUARDED_BY(mutex) = 0;
  std::map<uint64_t, Value> listeners SYLAR_GUARDED_BY(mutex);
};

LoadableVar::LoadableVar(const std::string& name, const std::string& description, SourceLocation location, Value value)
    : ConfigVarBase(name, description, location), m_state(std::make_unique<State>(settingLock(*this), std::move(value))) {}

LoadableVar::~LoadableVar() = default;

LoadableVar::Value LoadableVar::current() const {
  const Lock lock(m_state->mutex);
  return m_state->value;
}

LoadableVar::Value LoadableVar::commit(Value value) noexcept {
  const Lock lock(m_state->mutex);
  m_state->value.swap(value);
  return value;
}

void LoadableVar::notify() {
  bool telling = false;
  while (const std::optional<State::Change> change = m_state->nextChange(telling)) {
    try {
      if (!equal(change->was.get(), change->is.get())) tell(change->was.get(), change->is.get());
    } catch (const std::exception& failure) {
      logFailure("could not tell its listeners", failure);
    }
  }
}

void LoadableVar::tell(const void* was, const void* is) {
  for (const uint64_t id : m_state->listenerIds()) {
    const Value listener = find(id);
    if (listener == nullptr) continue;  // deleted by an earlier listener
    try {
      call(listener.get(), was, is);
    } catch (const std::exception& failure) {
      logFailure("a listener threw", failure);
    } catch (...) {
      logFailure("a listener threw", std::runtime_error("something that is no std::exception"));
    }
  }
}

uint64_t LoadableVar::add(Value listener) {
  const Lock lock(m_state->mutex);
  m_state->listeners.emplace(++m_state->last_id, std::move(listener));
  return m_state->last_id;
}

LoadableVar::Value LoadableVar::find(uint64_t id) const {
  const Lock lock(m_state->mutex);
  const auto found = m_state->listeners.find(id);
  return found == m_state->listeners.end() ? nullptr : found->second;
}

void LoadableVar::delListener(uint64_t id) {
  const Value dropped = find(id);  // its captures are destroyed outside the lock
  const Lock lock(m_state->mutex);
  m_state->listeners.erase(id);
}

void LoadableVar::clearListener() {
  std::map<uint64_t, Value> dropped;
  const Lock lock(m_state->mutex);
  m_state->listeners.swap(dropped);
}

}  // namespace sylar
