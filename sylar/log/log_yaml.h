// Internal. Builds the YAML that describes loggers and appenders.
#pragma once

#include <string>
#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Returns `text` as a double-quoted scalar.
std::string yamlQuoted(std::string_view text);
/// Returns a mapping as an item of a sequence, `indent` spaces from the left.
std::string yamlItem(std::string_view mapping, size_t indent);

}  // namespace sylar::detail
