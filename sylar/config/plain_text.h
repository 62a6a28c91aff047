// Internal. Checks a text before a YAML parser sees it: it must be UTF-8 and have no control bytes except tab, newline and
// return. yaml-cpp takes one control byte for the end of the text, and replaces bytes that are not UTF-8 by other characters.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <string_view>

#include "sylar/base/internal.h"

namespace sylar::detail {

struct TextFlaw {
  int line = 0;  // from 1; 0 if there is no flaw
  const char* reason = nullptr;
};

/// Returns the first flaw in `text`.
TextFlaw findTextFlaw(std::string_view text);

}  // namespace sylar::detail
