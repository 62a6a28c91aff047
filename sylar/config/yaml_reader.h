// Internal. Converts YAML text to YamlNode, within the limits of yaml_limits.h. These and all mistakes of form are checked on
// yaml-cpp's stream of events, before there are nodes, so the memory for a text is bounded whatever its contents.
//
// Stack: some 25 KiB at the greatest depth. Code that may run in a small fiber calls through onThread().
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/config/config_error.h"
#include "sylar/config/yaml_node.h"

namespace YAML {
class Node;
}

namespace sylar::detail {

/// Reads the one document in `text`; an empty text gives a null node. Mistakes are added to `errors` under the name `file`. After
/// a mistake in the syntax or an exceeded limit the result is a null node, after other mistakes the document without the wrong
/// parts.
YamlNode readYaml(const std::string& text, const std::string& file, std::vector<ConfigError>& errors);

/// Converts a tree of yaml-cpp, with the same limits and errors as a text.
YamlNode readYaml(const YAML::Node& root, const std::string& file, std::vector<ConfigError>& errors);

/// Runs `work` on a thread of its own, with a thread's stack, and rethrows its exception; blocks the calling thread until then.
/// On such a thread it is a plain call. Throws std::system_error if no thread can be made.
void onThread(const std::function<void()>& work);

}  // namespace sylar::detail
