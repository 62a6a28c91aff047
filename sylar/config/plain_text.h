// Internal. What a text may consist of before a YAML parser sees it: UTF-8, and no control bytes but tab, newline and return.
// yaml-cpp takes one control byte for the end of the text, and puts other characters where there is no UTF-8.
//
// Thread safety: all.
#pragma once

#include <string_view>

namespace sylar {

struct TextFlaw {
  int line = 0;  // from 1; 0 = none
  const char* reason = nullptr;
};

/// The first flaw in `text`.
TextFlaw findTextFlaw(std::string_view text);

}  // namespace sylar
