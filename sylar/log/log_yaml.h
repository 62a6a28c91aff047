// Internal. The little YAML that the log says about itself.
#pragma once

#include <string>
#include <string_view>

namespace sylar {

/// A double-quoted scalar.
std::string yamlQuoted(std::string_view text);
/// A mapping as an item of a sequence, `indent` spaces from the left.
std::string yamlItem(std::string_view mapping, size_t indent);

}  // namespace sylar
