// Internal. The settings of the process, and the loaded sources for settings that are made later.
//
// Thread safety: all calls from any thread; a field is guarded by the lock that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylar/api.h"
#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/config/config_walk.h"
#include "sylar/config/yaml_node.h"

namespace sylar::detail {

/// A text or tree that a load has taken, or is about to take.
struct ConfigSource {
  std::string origin;  // the directory; empty for a tree
  std::string name;    // the file, for messages
  size_t hash = 0;     // the hash of its text
  std::shared_ptr<const YamlNode> root;
};

struct ConfigRegistry {
  OsMutex loading;                          // serialises loads; taken before `mutex`, held while values are converted
  OsMutex mutex;                            // no foreign code runs under it
  ConfigVars vars SYLAR_GUARDED_BY(mutex);  // never shrinks
  std::vector<ConfigSource> loaded SYLAR_GUARDED_BY(mutex);  // the newest last
  uint64_t loads SYLAR_GUARDED_BY(mutex) = 0;                // counts the changes of `loaded`
};

/// Has `make_settings` called before any other use of settings, so that a program finds the library's settings with their types
/// and checks. A constructor in a higher module calls it; the last call counts.
SYLAR_API void atFirstUseOfConfig(void (*make_settings)());
/// Calls the function of atFirstUseOfConfig() once; other threads wait until it has returned. Every public call begins with this.
SYLAR_API void beginUseOfConfig();

/// Returns the lock that guards `var`; other settings may share it. A fork waits for it. Under it no foreign code runs and no
/// other lock is taken.
OsMutex& settingLock(const ConfigVarBase& var);

/// Returns the registry, which is made at the first use and never destroyed, because settings are global variables of programs.
ConfigRegistry& configRegistry();

/// Runs `work` on a large stack, because it calls casts and checks, which are foreign code. inConversion() is true for them.
void convertOnThread(const std::function<void()>& work);
bool inConversion();

}  // namespace sylar::detail
