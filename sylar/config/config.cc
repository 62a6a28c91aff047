#include "sylar/config.h"

#include <stdexcept>
#include <system_error>
#include <vector>

#include "sylar/base/ascii.h"
#include "sylar/base/log.h"
#include "sylar/config/config_registry.h"
#include "sylar/config/yaml_reader.h"

namespace sylar {
namespace {

thread_local bool t_converting = false;

std::string checkedName(const std::string& name) {
  std::string lower = asciiLower(name);
  if (isConfigName(lower)) return lower;
  throw std::invalid_argument("setting '" + printable(name) + "': a name is of a-z 0-9 . _ - only");
}

/// Gives a new setting the value that was loaded for it before it existed.
void takeLoaded(LoadableVar& var, const std::vector<ConfigSource>& loaded) {
  for (auto source = loaded.rbegin(); source != loaded.rend(); ++source) {
    const YamlNode* const node = findSetting(*source->root, var.getName());
    if (node == nullptr) continue;
    try {
      convertOnThread([&] {
        if (auto value = ConfigAccess::prepare(var, *node)) ConfigAccess::commit(var, std::move(value));
      });
      ConfigAccess::notify(var);
    } catch (const BadValue& bad) {
      const ConfigError error{source->name, bad.line(), var.getName() + printable(bad.path()), bad.value(), bad.what()};
      log::error("config: {}; the default stays", error.toString());
    } catch (const std::system_error& failure) {
      log::error("config: {}: what was loaded cannot be read, the default stays: {}", var.getName(), failure.what());
    }
    return;
  }
}

using MakeSettings = void (*)();
constinit MakeSettings g_make_library_settings = nullptr;

}  // namespace

void detail::atFirstUseOfConfig(MakeSettings make_settings) { g_make_library_settings = make_settings; }

void detail::beginUseOfConfig() {
  thread_local bool t_making = false;  // this thread is in the function, which itself makes settings
  if (t_making || g_make_library_settings == nullptr) return;
  struct Making {
    Making() { t_making = true; }
    ~Making() { t_making = false; }
  } const making;
  static const bool made = (g_make_library_settings(), true);
  static_cast<void>(made);
}

ConfigRegistry& detail::configRegistry() {
  static auto* const instance = new ConfigRegistry;
  return *instance;
}

void detail::convertOnThread(const std::function<void()>& work) {
  onThread([&work] {
    const bool outer = std::exchange(t_converting, true);
    try {
      work();
    } catch (...) {
      t_converting = outer;
      throw;
    }
    t_converting = outer;
  });
}

bool detail::inConversion() { return t_converting; }

ConfigVarBase::ptr Config::LookupBase(const std::string& name) {
  beginUseOfConfig();
  const std::string lower = asciiLower(name);
  ConfigRegistry& all = configRegistry();
  const Lock lock(all.mutex);
  const auto found = all.vars.find(lower);
  return found == all.vars.end() ? nullptr : found->second;
}

ConfigVarBase::ptr Config::findOrMake(const std::string& name, const Make& make) {
  const std::string lower = checkedName(name);
  ConfigRegistry& all = configRegistry();
  for (;;) {
    if (ConfigVarBase::ptr found = LookupBase(lower)) return found;
    std::vector<ConfigSource> loaded;
    uint64_t loads = 0;
    {
      const Lock lock(all.mutex);
      loaded = all.loaded;
      loads = all.loads;
    }
    const LoadableVar::ptr made = make();
    takeLoaded(*made, loaded);
    const Lock lock(all.mutex);
    if (all.loads == loads && all.vars.emplace(lower, made).second) return made;
  }
}

void Config::Visit(const std::function<void(ConfigVarBase::ptr)>& visitor) {
  beginUseOfConfig();
  std::vector<ConfigVarBase::ptr> vars;
  {
    ConfigRegistry& all = configRegistry();
    const Lock lock(all.mutex);
    for (const auto& [name, var] : all.vars) vars.push_back(var);
  }
  for (const ConfigVarBase::ptr& var : vars) visitor(var);
}

ConfigError Config::errorAt(const std::string& name, const std::string& path, const std::string& reason) {
  ConfigRegistry& all = configRegistry();
  std::vector<ConfigSource> loaded;
  {
    const Lock lock(all.mutex);
    loaded = all.loaded;
  }
  return ConfigPreview({}, loaded).errorAt(name, path, reason);
}

void Config::logOtherType(const ConfigVarBase& found, const std::string& wanted, const SourceLocation& location) {
  log::error("config: {} is of type {}, not {}: it was made at {}, and is wanted at {}", found.getName(), found.getTypeName(),
             wanted, found.getLocation().toString(), location.toString());
}

}  // namespace sylar
