// Text from elsewhere, made fit for a log and for every store.
#pragma once

#include <algorithm>
#include <string>

namespace jobs {

/// Replaces what is no visible ASCII, and cuts what is too long.
inline std::string plainText(std::string text) {
  text.resize(std::min<size_t>(text.size(), 300));
  std::replace_if(
      text.begin(), text.end(), [](char each) { return each < ' ' || each > '~'; }, '?');
  return text;
}

}  // namespace jobs
