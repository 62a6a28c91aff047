// Internal. A YAML value as the casts see it: no styles, no comments, aliases resolved, every part with its line.
//
// It exists because yaml-cpp's own nodes look keys up one after the other, may contain themselves, and are shared between threads
// without a lock. Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sylar {

struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  int line = 0;                 // from 1; 0 = unknown
  int key_line = 0;             // of its key in a map
  std::string key;              // its key in a map
  std::string text;             // of a scalar, without quotes
  std::vector<YamlNode> items;  // of a sequence or a map, in the order of the text

  static YamlNode scalar(std::string text);
  bool isMap() const { return kind == Kind::kMap; }
  bool isScalar() const { return kind == Kind::kScalar; }
  /// "a map", "a list", "nothing", or "'text'", for messages.
  std::string describe() const;
};

/// `node` as YAML text, which parseYaml turns into an equal node. Throws std::bad_alloc.
std::string toYamlText(const YamlNode& node);

/// A value that a setting cannot take. Casts throw it; who knows more of the place completes it on the way up.
class BadValue : public std::invalid_argument {
 public:
  explicit BadValue(const std::string& reason) : std::invalid_argument(reason) {}

  /// The innermost node that is told wins.
  void setNode(const YamlNode& node);
  void prepend(const std::string& step) { m_path.insert(0, step); }

  int line() const { return m_line; }
  const std::string& path() const { return m_path; }    ///< "[2].port", relative to the setting
  const std::string& value() const { return m_value; }  ///< what stands there, for messages

 private:
  bool m_placed = false;
  int m_line = 0;
  std::string m_path;
  std::string m_value;
};

}  // namespace sylar
