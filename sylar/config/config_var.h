// One setting: a typed value with a name, a default, a check, and listeners.
//
//   static sylar::ConfigVar<int>::ptr g_timeout = sylar::Config::Lookup("tcp.connect.timeout", 5000, "in ms", sylar::inRange(1,
//   60'000)); g_timeout->addListener([](const int& was, const int& is) { ... });
//
// A change is committed first, then told to the listeners, outside all locks: in a listener getValue() is the new value, and
// everything of this class may be called. Listeners learn of changes in the order of the commits, one at a time, by ascending id.
// What is set while they are being told, by one of them or by another thread, is told next by the thread that is telling; several
// such changes are told as one, from the value told last to the present one. So setValue may return before its own change was
// told.
//
// Thread safety: all, from any thread, and in the child of a fork. May suspend: no. What T, its casts, the check and the
// listeners do is theirs.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/base/util.h"
#include "sylar/config/config_error.h"
#include "sylar/config/lexical_cast.h"
#include "sylar/config/yaml_node.h"

namespace sylar {

/// A setting of any type. Programs may derive from it; what Config finds and loads is made by Config::Lookup.
class ConfigVarBase {
 public:
  using ptr = std::shared_ptr<ConfigVarBase>;

  /// `name` is lower-cased.
  explicit ConfigVarBase(const std::string& name, const std::string& description = "");
  virtual ~ConfigVarBase() = default;
  ConfigVarBase(const ConfigVarBase&) = delete;
  ConfigVarBase& operator=(const ConfigVarBase&) = delete;

  const std::string& getName() const { return m_name; }
  const std::string& getDescription() const { return m_description; }

  /// The value as YAML text. If its cast throws, that is logged and the text is empty.
  virtual std::string toString() = 0;
  /// Takes the value from YAML text (a string as it is). False if the cast or the check refuses it: that is logged, nothing
  /// changes.
  virtual bool fromString(const std::string& text) = 0;
  /// Name of the type, as C++ spells it.
  virtual std::string getTypeName() const = 0;

 protected:
  /// One line: name, `what`, the reason.
  void logFailure(const std::string& what, const std::exception& failure) const;

 private:
  const std::string m_name;
  const std::string m_description;
};

/// Internal. A setting that loads can set, in their steps.
class LoadableVar : public ConfigVarBase {
 public:
  using ptr = std::shared_ptr<LoadableVar>;
  using ConfigVarBase::ConfigVarBase;

 protected:
  using Value = std::shared_ptr<const void>;

 private:
  friend class ConfigAccess;

  /// What `node` says, checked; null if that is the present value. Throws BadValue.
  virtual Value prepare(const YamlNode& node) const = 0;
  /// Takes a prepared value; returns the one before, to be dropped outside all locks. No foreign code runs here.
  virtual Value commit(Value value) noexcept = 0;
  /// Tells the listeners what they do not know yet.
  virtual void notify() = 0;
};

namespace detail {
/// The lock that guards `var`; other settings may share it. A fork waits for it. No foreign code runs under it, and no other lock
/// is taken.
OsMutex& settingLock(const ConfigVarBase& var);
}  // namespace detail

/// What is right for a setting: returns "" for a good value, else the rule as a phrase: "must be from 1 to 65535".
template <class T>
using ConfigCheck = std::function<std::string(const T&)>;

template <class T, class FromStr = LexicalCast<std::string, T>, class ToStr = LexicalCast<T, std::string>>
class ConfigVar : public LoadableVar {
 public:
  using ptr = std::shared_ptr<ConfigVar>;
  using value_type = T;
  using on_change_cb = std::function<void(const T& old_value, const T& new_value)>;

  /// Throws std::invalid_argument if `check` refuses `default_value`. Config::Lookup makes settings that files can set.
  ConfigVar(const std::string& name, const T& default_value, const std::string& description = "", ConfigCheck<T> check = nullptr)
      : LoadableVar(name, description),
        m_check(std::move(check)),
        m_value(std::make_shared<const T>(default_value)),
        m_told(m_value) {
    requireGood(default_value);
  }

  /// A copy of the value at this moment.
  const T getValue() const { return *current(); }

  /// Sets the value and tells the listeners; nothing happens if it equals the present one. Throws std::invalid_argument if the
  /// check refuses it.
  void setValue(const T& value) {
    requireGood(value);
    if (*current() == value) return;
    commit(std::make_shared<const T>(value));
    notify();
  }

  std::string toString() override {
    try {
      return ToStr{}(*current());
    } catch (const std::exception& failure) {
      logFailure("cannot be written as text", failure);
      return "";
    }
  }

  bool fromString(const std::string& text) override {
    try {
      setValue(FromStr{}(text));
      return true;
    } catch (const std::exception& failure) {
      logFailure("keeps its value: '" + printable(text) + '\'', failure);
      return false;
    }
  }

  std::string getTypeName() const override { return TypeToName<T>(); }

  /// Calls `listener` after each change, from now on. What it throws is logged, and the others are called all the same. Returns
  /// its id, never 0.
  uint64_t addListener(on_change_cb listener) {
    const Lock lock(m_mutex);
    m_listeners.emplace(++m_last_id, std::make_shared<const on_change_cb>(std::move(listener)));
    return m_last_id;
  }
  /// No call of it begins after this; one may be under way on another thread.
  void delListener(uint64_t id) {
    Listener dropped = find(id);  // its captures are destroyed outside the lock
    const Lock lock(m_mutex);
    m_listeners.erase(id);
  }
  /// A copy; empty if there is none of that id.
  on_change_cb getListener(uint64_t id) const {
    const Listener listener = find(id);
    return listener == nullptr ? nullptr : *listener;
  }
  void clearListener() {
    std::map<uint64_t, Listener> dropped;
    const Lock lock(m_mutex);
    m_listeners.swap(dropped);
  }

 private:
  using Listener = std::shared_ptr<const on_change_cb>;

  void requireGood(const T& value) const {
    if (m_check == nullptr) return;
    const std::string rule = m_check(value);
    if (!rule.empty()) throw std::invalid_argument("setting " + getName() + ": " + rule);
  }

  std::shared_ptr<const T> current() const {
    const Lock lock(m_mutex);
    return m_value;
  }

  Listener find(uint64_t id) const {
    const Lock lock(m_mutex);
    const auto found = m_listeners.find(id);
    return found == m_listeners.end() ? nullptr : found->second;
  }

  Value prepare(const YamlNode& node) const override {
    auto value = std::make_shared<const T>(detail::castNode<FromStr>(node, true));
    if (m_check != nullptr) {
      if (const std::string rule = m_check(*value); !rule.empty()) {
        BadValue bad(rule);
        bad.setNode(node);
        throw bad;
      }
    }
    return *value == *current() ? nullptr : value;
  }

  Value commit(Value value) noexcept override {
    auto typed = std::static_pointer_cast<const T>(std::move(value));
    const Lock lock(m_mutex);
    m_value.swap(typed);
    return typed;
  }

  void notify() override {
    bool telling = false;
    while (const std::optional<Change> change = nextChange(telling)) {
      try {
        if (!(*change->was == *change->is)) tell(*change);
      } catch (const std::exception& failure) {
        logFailure("could not tell its listeners", failure);
      }
    }
  }

  struct Change {
    std::shared_ptr<const T> was, is;
  };

  /// What the listeners do not know yet, if anything, and if nobody else is telling them.
  std::optional<Change> nextChange(bool& telling) {
    const Lock lock(m_mutex);
    if (m_telling && !telling) return std::nullopt;
    telling = m_telling = m_told != m_value;
    if (!telling) return std::nullopt;
    return Change{std::exchange(m_told, m_value), m_value};
  }

  void tell(const Change& change) {
    for (const uint64_t id : listenerIds()) {
      const Listener listener = find(id);
      if (listener == nullptr || *listener == nullptr) continue;  // deleted by one of those before
      try {
        (*listener)(*change.was, *change.is);
      } catch (const std::exception& failure) {
        logFailure("a listener threw", failure);
      } catch (...) {
        logFailure("a listener threw", std::runtime_error("something that is no std::exception"));
      }
    }
  }

  std::vector<uint64_t> listenerIds() const {
    std::vector<uint64_t> ids;
    const Lock lock(m_mutex);
    for (const auto& [id, listener] : m_listeners) ids.push_back(id);
    return ids;
  }

  OsMutex& m_mutex = detail::settingLock(*this);
  const ConfigCheck<T> m_check;
  std::shared_ptr<const T> m_value SYLAR_GUARDED_BY(m_mutex);
  std::shared_ptr<const T> m_told SYLAR_GUARDED_BY(m_mutex);  // what the listeners know
  bool m_telling SYLAR_GUARDED_BY(m_mutex) = false;           // somebody is in notify()
  uint64_t m_last_id SYLAR_GUARDED_BY(m_mutex) = 0;
  std::map<uint64_t, Listener> m_listeners SYLAR_GUARDED_BY(m_mutex);
};

}  // namespace sylar
