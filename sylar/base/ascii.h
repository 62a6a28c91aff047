// Internal. Case conversion without a locale, for ASCII letters only.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <string>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Returns `text` with A to Z in lower case and all other bytes unchanged.
inline std::string asciiLower(std::string text) {
  for (char& c : text) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace sylar::detail
