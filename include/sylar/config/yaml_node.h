// A YAML value as the casts of settings see it: without styles and comments, with aliases resolved, and with a line for every
// part.
//
// It exists because yaml-cpp's own nodes look up keys one after the other, may contain themselves, and are shared between threads
// without a lock.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sylar/api.h"

namespace sylar {

struct SYLAR_API YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  int line = 0;                 // from 1, or 0 if unknown
  int key_line = 0;             // the line of its key in a map
  std::string key;              // its key in a map
  std::string text;             // of a scalar, without quotes
  std::vector<YamlNode> items;  // of a sequence or a map, in the order of the text

  static YamlNode scalar(std::string text);
  bool isMap() const { return kind == Kind::kMap; }
  bool isScalar() const { return kind == Kind::kScalar; }
  /// Returns "a map", "a list", "nothing" or "'text'", for messages.
  std::string describe() const;
};

/// Returns `node` as YAML text, which parseYaml() turns into an equal node. Throws std::bad_alloc.
SYLAR_API std::string toYamlText(const YamlNode& node);
/// Reads the one value in `text`, within the limits of a file. An empty text is null. Throws BadValue with the first mistake.
SYLAR_API YamlNode parseYaml(const std::string& text);

/// Thrown by casts for a value that a setting cannot take. Callers that know more about its place add that on the way up.
class SYLAR_API BadValue : public std::invalid_argument {
 public:
  explicit BadValue(const std::string& reason) : std::invalid_argument(reason) {}

  /// Sets the node that is wrong. Only the first call counts, so the innermost node wins.
  void setNode(const YamlNode& node);
  void prepend(const std::string& step) { m_path.insert(0, step); }

  int line() const { return m_line; }
  const std::string& path() const { return m_path; }    ///< "[2].port", relative to the setting
  const std::string& value() const { return m_value; }  ///< the text there, for messages

 private:
  bool m_placed = false;
  int m_line = 0;
  std::string m_path;
  std::string m_value;
};

}  // namespace sylar
