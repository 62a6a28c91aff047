// One setting: a typed value with a name, a default, a check, and listeners.
//
//   static auto g_timeout = sylar::Config::Lookup<int>("tcp.connect.timeout", 5000, "in ms", sylar::inRange(1, 60'000));
//   g_timeout->addListener([](const int& was, const int& is) { ... });
//
// A change is first committed, and then passed to the listeners outside all locks. In a listener getValue() returns the new
// value, and every function of this class may be called. Listeners hear of changes in the order of the commits, one at a time, by
// ascending id. If a listener or another thread sets the value while listeners are being called, the thread that calls them
// delivers that change next. Several such changes are delivered as one, from the last delivered value to the present one. So
// setValue() may return before its own change was delivered.
//
// Thread safety: all calls from any thread, and in the child of a fork. May suspend: no. This does not cover T, its casts, the
// check and the listeners, which are the program's code.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "sylar/api.h"
#include "sylar/config/config_error.h"
#include "sylar/config/lexical_cast.h"
#include "sylar/config/type_name.h"
#include "sylar/config/yaml_node.h"

namespace sylar {

/// A line of a program's source. As a default argument, here() returns the line of the call.
class SourceLocation {
 public:
  static constexpr SourceLocation here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return SourceLocation(file, line);
  }
  /// Returns `FILE:LINE`.
  std::string toString() const { return m_file + (':' + std::to_string(m_line)); }

 private:
  constexpr SourceLocation(const char* file, int line) : m_file(file), m_line(line) {}

  const char* m_file;
  int m_line;
};

/// A setting of any type. Programs may derive from it, but Config finds and loads only the settings that Config::Lookup makes.
class SYLAR_API ConfigVarBase {
 public:
  using ptr = std::shared_ptr<ConfigVarBase>;

  /// Makes a setting whose name is `name` in lower case.
  explicit ConfigVarBase(const std::string& name, const std::string& description = "",
                         SourceLocation location = SourceLocation::here());
  virtual ~ConfigVarBase() = default;
  ConfigVarBase(const ConfigVarBase&) = delete;
  ConfigVarBase& operator=(const ConfigVarBase&) = delete;

  const std::string& getName() const { return m_name; }
  const std::string& getDescription() const { return m_description; }
  /// Returns where the setting was made.
  const SourceLocation& getLocation() const { return m_location; }

  /// Returns true, the default, if a change takes effect in the running program. If a reload changes a setting that is not live,
  /// Application says so.
  bool isLive() const { return m_live.load(std::memory_order_relaxed); }
  void setLive(bool live) { m_live.store(live, std::memory_order_relaxed); }

  /// Returns the value as YAML text. If its cast throws, that is logged and the text is empty.
  virtual std::string toString() = 0;
  /// Sets the value from YAML text (for a string, from the text as it is). Returns false if the cast or the check refuses it;
  /// that is logged, and nothing changes.
  virtual bool fromString(const std::string& text) = 0;
  /// Returns the name of the type, as C++ spells it.
  virtual std::string getTypeName() const = 0;

 protected:
  /// Logs one line with the name, `what` and the reason.
  void logFailure(const std::string& what, const std::exception& failure) const;

 private:
  const std::string m_name;
  const std::string m_description;
  const SourceLocation m_location;
  std::atomic<bool> m_live{true};
};

namespace detail {
class ConfigAccess;
}

/// The part of a setting that does not depend on its type. It keeps a value and listeners, whose types ConfigVar knows.
class SYLAR_API LoadableVar : public ConfigVarBase {
 public:
  using ptr = std::shared_ptr<LoadableVar>;
  ~LoadableVar() override;

  /// Removes a listener. No call of it begins afterwards, but one may still be running on another thread.
  void delListener(uint64_t id);
  void clearListener();

 protected:
  using Value = std::shared_ptr<const void>;

  LoadableVar(const std::string& name, const std::string& description, SourceLocation location, Value value);

  Value current() const;
  /// Stores `value` and returns the previous one, which the caller must drop outside all locks. No foreign code runs here.
  Value commit(Value value) noexcept;
  /// Calls the listeners for the changes that they do not know yet.
  void notify();
  uint64_t add(Value listener);
  Value find(uint64_t id) const;

 private:
  friend class detail::ConfigAccess;
  struct State;

  /// Converts and checks `node`. Returns null if the result is the present value. Throws BadValue.
  virtual Value prepare(const YamlNode& node) const = 0;
  virtual bool equal(const void* a, const void* b) const = 0;
  virtual void call(const void* listener, const void* was, const void* is) const = 0;
  void tell(const void* was, const void* is);

  const std::unique_ptr<State> m_state;
};

/// Checks a value of a setting. Returns "" for a good value, else the rule as a phrase, such as "must be from 1 to 65535".
template <class T>
using ConfigCheck = std::function<std::string(const T&)>;

template <class T, class FromStr = LexicalCast<std::string, T>, class ToStr = LexicalCast<T, std::string>>
class SYLAR_API ConfigVar : public LoadableVar {
 public:
  using ptr = std::shared_ptr<ConfigVar>;
  using value_type = T;
  using on_change_cb = std::function<void(const T& old_value, const T& new_value)>;

  /// Throws std::invalid_argument if `check` refuses `default_value`. Use Config::Lookup for a setting that files can set.
  ConfigVar(const std::string& name, const T& default_value, const std::string& description = "", ConfigCheck<T> check = nullptr,
            SourceLocation location = SourceLocation::here())
      : LoadableVar(name, description, location, std::make_shared<const T>(default_value)), m_check(std::move(check)) {
    requireGood(default_value);
  }

  /// Returns a copy of the value at this moment.
  const T getValue() const { return *present(); }

  /// Sets the value and calls the listeners. Does nothing if `value` equals the present one. Throws std::invalid_argument if the
  /// check refuses it.
  void setValue(const T& value) {
    requireGood(value);
    if (*present() == value) return;
    commit(std::make_shared<const T>(value));
    notify();
  }

  std::string toString() override {
    try {
      return ToStr{}(*present());
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

  /// Calls `listener` after each change from now on. An exception that it throws is logged, and the other listeners are still
  /// called. Returns the listener's id, which is never 0.
  uint64_t addListener(on_change_cb listener) { return add(std::make_shared<const on_change_cb>(std::move(listener))); }
  /// Returns a copy of the listener with that id, which is empty if there is none.
  on_change_cb getListener(uint64_t id) const {
    const Value listener = find(id);
    return listener == nullptr ? nullptr : *static_cast<const on_change_cb*>(listener.get());
  }

 private:
  void requireGood(const T& value) const {
    if (m_check == nullptr) return;
    const std::string rule = m_check(value);
    if (!rule.empty()) throw std::invalid_argument("setting " + getName() + ": " + rule);
  }

  std::shared_ptr<const T> present() const { return std::static_pointer_cast<const T>(current()); }

  Value prepare(const YamlNode& node) const override {
    auto value = std::make_shared<const T>(detail::castNode<FromStr>(node, true));
    if (m_check != nullptr) {
      if (const std::string rule = m_check(*value); !rule.empty()) {
        BadValue bad(rule);
        bad.setNode(node);
        throw bad;
      }
    }
    return *value == *present() ? nullptr : value;
  }

  bool equal(const void* a, const void* b) const override { return *static_cast<const T*>(a) == *static_cast<const T*>(b); }

  void call(const void* listener, const void* was, const void* is) const override {
    const auto& callback = *static_cast<const on_change_cb*>(listener);
    if (callback != nullptr) callback(*static_cast<const T*>(was), *static_cast<const T*>(is));
  }

  const ConfigCheck<T> m_check;
};

}  // namespace sylar
