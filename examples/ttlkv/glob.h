// KEYS, PSUBSCRIBE and CONFIG GET take patterns.
#pragma once

#include <string_view>

namespace ttlkv {

/// Returns whether `text` matches `pattern`, which may contain * ? [abc] [^a-z] and \ before a character that stands for itself.
/// The time is bounded by the product of the sizes, whatever the pattern.
bool globMatches(std::string_view pattern, std::string_view text);

}  // namespace ttlkv
