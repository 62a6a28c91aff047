#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "sylar/base/log.h"
#include "sylar/config.h"
#include "sylar/config/conf_dir.h"
#include "sylar/config/config_registry.h"
#include "sylar/config/yaml_limits.h"
#include "sylar/config/yaml_reader.h"

namespace sylar {
namespace {

constexpr size_t kMostTrees = 64;             // from LoadFromYaml, kept for settings that are made later
constexpr size_t kMostNodes = 1'000'000;      // of all files of a load
constexpr size_t kMostTextBytes = 64u << 20;  // of all files of a load
constexpr const char* kTree = "<yaml>";

enum class Purpose { kTake, kCheck };

/// One load. The `read` of run() fills `sources` and `errors`, on a thread of its own.
class Load {
 public:
  explicit Load(UnknownKeys policy, const ConfigValidator& validate = nullptr, Purpose purpose = Purpose::kTake)
      : m_policy(policy), m_validate(validate), m_purpose(purpose) {
    beginUseOfConfig();
    if (inConversion()) throw std::logic_error("a cast or a check must not load settings");
  }

  LoadResult run(const std::string& origin, bool force, const std::function<void(Load&)>& read) {
    std::vector<PreparedSetting> changed;
    {
      const Lock lock(configRegistry().loading);
      try {
        onThread([&] { read(*this); });
        changed = takeAll(origin, force);
      } catch (const std::system_error& failure) {
        fail(origin, fmt::format("no thread to read on: {}", failure.what()));
      } catch (const std::bad_alloc&) {
        sources.clear();
        fail(origin, "not enough memory");
      }
    }
    for (const PreparedSetting& each : changed) ConfigAccess::notify(*each.var);
    report(errors);
    report(m_unknown);
    return {std::move(errors), std::move(m_unknown), m_changed};
  }

  std::vector<ConfigSource> sources;
  std::vector<ConfigError> errors;

 private:
  void fail(const std::string& origin, std::string reason) {
    errors.push_back({origin.empty() ? kTree : origin, 0, "", "", std::move(reason)});
  }

  /// Prepares everything and, if nothing is wrong, commits it. If a cast makes settings, everything is prepared again.
  std::vector<PreparedSetting> takeAll(const std::string& origin, bool force) {
    ConfigRegistry& all = configRegistry();
    for (;;) {
      ConfigVars vars;
      std::vector<ConfigSource> loaded;
      {
        const Lock lock(all.mutex);
        vars = all.vars;
        loaded = all.loaded;
      }
      ConfigWalk walk(vars, m_policy);
      convertOnThread([&] {
        for (size_t i = 0; i < sources.size(); ++i) walk.visit(*sources[i].root, sources[i].name, i);
      });
      if (!force) std::erase_if(walk.prepared, [&](const auto& each) { return wasTaken(sources[each.source], loaded); });
      std::sort(walk.prepared.begin(), walk.prepared.end(),
                [](const auto& a, const auto& b) { return a.var->getName() < b.var->getName(); });
      replace(loaded, origin);
      if (m_validate != nullptr && errors.empty() && walk.errors.empty()) {
        convertOnThread([&] { walk.errors = m_validate(ConfigPreview(walk.prepared, loaded)); });
      }
      std::vector<ConfigAccess::Value> dropped(walk.prepared.size());  // destroyed outside the lock

      const Lock lock(all.mutex);
      if (all.vars.size() != vars.size()) continue;
      m_unknown = std::move(walk.unknown);
      errors.insert(errors.end(), walk.errors.begin(), walk.errors.end());
      if (!errors.empty()) return {};
      m_changed = walk.prepared.size();
      if (m_purpose == Purpose::kCheck) return {};
      for (size_t i = 0; i < dropped.size(); ++i) {
        dropped[i] = ConfigAccess::commit(*walk.prepared[i].var, std::move(walk.prepared[i].value));
      }
      all.loaded.swap(loaded);
      ++all.loads;
      return std::move(walk.prepared);
    }
  }

  static bool wasTaken(const ConfigSource& source, const std::vector<ConfigSource>& loaded) {
    return !source.origin.empty() && std::any_of(loaded.begin(), loaded.end(), [&](const ConfigSource& before) {
      return before.name == source.name && before.hash == source.hash;
    });
  }

  /// Replaces the sources of `origin` in `loaded` by those of this load.
  void replace(std::vector<ConfigSource>& loaded, const std::string& origin) const {
    const auto is_tree = [](const ConfigSource& source) { return source.origin.empty(); };
    if (!origin.empty()) std::erase_if(loaded, [&](const ConfigSource& source) { return source.origin == origin; });
    loaded.insert(loaded.end(), sources.begin(), sources.end());
    if (std::count_if(loaded.begin(), loaded.end(), is_tree) > ptrdiff_t{kMostTrees}) {
      loaded.erase(std::find_if(loaded.begin(), loaded.end(), is_tree));
    }
  }

  void report(std::vector<ConfigError>& list) const {
    std::stable_sort(list.begin(), list.end(), [](const ConfigError& a, const ConfigError& b) {
      return a.file != b.file ? std::filesystem::path(a.file) < std::filesystem::path(b.file) : a.line < b.line;
    });
    if (list.size() > LoadResult::kMost) {
      list.resize(LoadResult::kMost);
      list.push_back({list.back().file, 0, "", "", fmt::format("there are more; {} are told", LoadResult::kMost)});
    }
    if (m_policy == UnknownKeys::kRefuse) return;  // the caller of a strict load reports them
    for (const ConfigError& error : list) log::error("config: {}", error.toString());
  }

  const UnknownKeys m_policy;
  const ConfigValidator m_validate;
  const Purpose m_purpose;
  std::vector<ConfigError> m_unknown;
  size_t m_changed = 0;
};

void readDirectory(const std::string& path, Load& load) {
  YamlExtent all;
  for (const ConfFile& file : readConfDir(path, load.errors)) {
    YamlNode tree = readYaml(file.text, file.path, load.errors);
    const YamlExtent extent = extentOf(tree);
    all.nodes += extent.nodes;
    all.bytes += extent.bytes;
    if (all.nodes > kMostNodes || all.bytes > kMostTextBytes) {
      load.errors.push_back(
          {file.path, 0, "", "",
           fmt::format("the limit is {} values and {} bytes of text in all files", kMostNodes, kMostTextBytes)});
      return;
    }
    const size_t hash = std::hash<std::string>{}(file.text);
    load.sources.push_back({path, file.path, hash, std::make_shared<const YamlNode>(std::move(tree))});
  }
}

}  // namespace

LoadResult Config::LoadFromYaml(const YAML::Node& root, UnknownKeys unknown) {
  return Load(unknown).run("", true, [&root](Load& load) {
    YamlNode tree = readYaml(root, kTree, load.errors);
    load.sources.push_back({"", kTree, 0, std::make_shared<const YamlNode>(std::move(tree))});
  });
}

LoadResult Config::LoadFromConfDir(const std::string& path, bool force, UnknownKeys unknown, const ConfigValidator& validate) {
  return Load(unknown, validate).run(path, force, [&path](Load& load) { readDirectory(path, load); });
}

LoadResult Config::CheckConfDir(const std::string& path, UnknownKeys unknown, const ConfigValidator& validate) {
  return Load(unknown, validate, Purpose::kCheck).run(path, true, [&path](Load& load) { readDirectory(path, load); });
}

}  // namespace sylar
