// Internal. What the process knows of settings: those that exist, and what was loaded for those to come.
//
// Thread safety: as the locks say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/config/config_walk.h"
#include "sylar/config/yaml_node.h"

namespace sylar {

/// A text or tree that a load has taken, or is about to take.
struct ConfigSource {
  std::string origin;  // the directory; empty for a tree
  std::string name;    // the file, for messages
  size_t hash = 0;     // of its text
  std::shared_ptr<const YamlNode> root;
};

struct ConfigRegistry {
  OsMutex loading;  // loads are one after the other; taken before `mutex`, held while values are converted
  OsMutex mutex;    // no foreign code runs under it
  ConfigVars vars SYLAR_GUARDED_BY(mutex);                   // only ever more
  std::vector<ConfigSource> loaded SYLAR_GUARDED_BY(mutex);  // the newest last
  uint64_t loads SYLAR_GUARDED_BY(mutex) = 0;                // how many changed `loaded`
};

/// Made at the first use and never destroyed: settings are global variables of programs.
ConfigRegistry& configRegistry();

/// Runs casts and checks, which are foreign code: on a large stack. inConversion() is true for them.
void convertOnThread(const std::function<void()>& work);
bool inConversion();

}  // namespace sylar
