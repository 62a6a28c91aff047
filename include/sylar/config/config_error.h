// The mistakes in a configuration: one entry for each, with its place and with what would be right.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/api.h"

namespace sylar {

struct SYLAR_API ConfigError {
  std::string file;    ///< "<yaml>" for nodes that did not come from a file
  int line = 0;        ///< from 1, or 0 if the mistake concerns the file as a whole
  std::string key;     ///< dotted name, with [index] for elements; empty if there is none
  std::string value;   ///< the text there, shortened, control bytes escaped; empty if there is none
  std::string reason;  ///< what is wrong, and what would be right

  /// Returns `FILE:LINE: key: 'value': reason`, without the parts that are empty.
  std::string toString() const;
};

/// The result of a load.
struct SYLAR_API LoadResult {
  static constexpr size_t kMost = 100;  ///< entries in each list; one further entry says that there are more

  /// The mistakes, in the order of the files and lines. If there are any, nothing was changed.
  std::vector<ConfigError> errors;
  /// Keys that no setting has, and that were ignored. If unknown keys are to be refused, they are in `errors` instead.
  std::vector<ConfigError> unknown;
  size_t changed = 0;  ///< number of settings that have another value now

  bool ok() const { return errors.empty(); }
  /// Returns a line for each error, then one for each unknown key.
  std::string toString() const;
};

/// Returns `text` for a message: shortened to some 60 bytes, with control bytes escaped.
SYLAR_API std::string printable(std::string_view text);

}  // namespace sylar
