// Internal. YAML text to YamlNode, within limits. The limits and all mistakes of form are found on yaml-cpp's stream of events,
// before there are nodes; what it takes to hold a text is therefore bounded whatever stands in it.
//
// Stack: some 25 KiB at the greatest depth. Who may be in a small fiber calls through onThread.
// Thread safety: all. None suspends.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sylar/config/config_error.h"
#include "sylar/config/yaml_node.h"

namespace YAML {
class Node;
}

namespace sylar {

struct YamlLimits {
  static constexpr size_t kBytes = 1 << 20;  // of one text
  static constexpr size_t kDepth = 64;       // of nesting, aliases resolved
  // Of one text, counting each copy that an anchor or an alias makes:
  static constexpr size_t kNodes = 100'000;
  static constexpr size_t kTextBytes = 8 << 20;  // of the keys and scalars
};

/// What a tree holds.
struct YamlExtent {
  size_t nodes = 0, depth = 0, bytes = 0;
};
YamlExtent extentOf(const YamlNode& node);

/// The one document in `text`; an empty text is null. Mistakes are added to `errors` as of `file`; with a mistake in the syntax,
/// or a limit passed, the result is null, else it is what remains without the wrong parts.
YamlNode readYaml(const std::string& text, const std::string& file, std::vector<ConfigError>& errors);

/// The same for a tree of yaml-cpp.
YamlNode readYaml(const YAML::Node& root, const std::string& file, std::vector<ConfigError>& errors);

/// The same for the text of a single value. Throws BadValue with the first mistake.
YamlNode parseYaml(const std::string& text);

/// Runs `work` on a thread of its own, with a thread's stack, and passes on what it throws; blocks the calling thread meanwhile.
/// On such a thread it is a plain call. Throws std::system_error if there can be no thread.
void onThread(const std::function<void()>& work);

}  // namespace sylar
