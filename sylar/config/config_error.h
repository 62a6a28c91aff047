// What is wrong in a configuration, and what would be right: one entry for each mistake, with its place.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sylar {

struct ConfigError {
  std::string file;    ///< "<yaml>" for nodes that came from no file
  int line = 0;        ///< from 1; 0 where the mistake concerns the file as a whole
  std::string key;     ///< dotted name, with [index] for elements; empty where there is none
  std::string value;   ///< what stands there, shortened, control bytes escaped; empty where there is none
  std::string reason;  ///< what is wrong, and what would be right

  /// `file:line: key: 'value': reason`, without the parts that are empty.
  std::string toString() const;
};

/// What a load found and did.
struct LoadResult {
  static constexpr size_t kMost = 100;  ///< in each list; one more says that there are more

  /// Not empty: nothing was changed. In the order of the files and lines.
  std::vector<ConfigError> errors;
  /// Keys that no setting has; they were passed over. Empty when they were to be refused: then they stand in `errors`.
  std::vector<ConfigError> unknown;
  size_t changed = 0;  ///< settings that have another value now

  bool ok() const { return errors.empty(); }
  /// A line for each error, then for each unknown key.
  std::string toString() const;
};

/// `text` for a message: control bytes escaped, shortened to some 60 bytes.
std::string printable(std::string_view text);

}  // namespace sylar
