// Converts text to values and back. This is the customization point of the settings.
//
// Built in: bool (true false yes no on off 1 0), all integers (decimal, 0x, 0o; checked for range; uint8_t is a number), floating
// point, std::string, every type that streams write and read; and of all these the containers vector, list, set, unordered_set,
// map<string, T>, unordered_map<string, T>, nested at will. A type of your own needs operator== and either the operators << and
// >> of streams or, in namespace sylar,
//
//   template <> class LexicalCast<std::string, Person> { public: Person operator()(const std::string& text); };   // reads
//   template <> class LexicalCast<Person, std::string> { public: std::string operator()(const Person& person); };  // writes
//
// `text` is YAML: the text of a scalar as it is, or a map or list as YAML::Load takes it. A cast that uses yaml-cpp must include
// <yaml-cpp/yaml.h> itself. An exception that operator() throws becomes the reason in the error, with file, line and key. The
// casts of settings run on a thread with a large stack, even if a small fiber loads them.
//
// Round trip: LexicalCast<std::string, T>()(LexicalCast<T, std::string>()(value)) == value, for all built-in types except NaN.
// Errors: std::invalid_argument. Source: sylar.
//
// Thread safety: all calls from any thread. May suspend: no.
#pragma once

#include <concepts>
#include <exception>
#include <limits>
#include <list>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sylar/api.h"
#include "sylar/config/yaml_node.h"

namespace sylar {

template <class F, class T>
class LexicalCast;

namespace detail {

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                  !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;
template <class T>
concept Number = Integer<T> || std::same_as<T, bool> || std::floating_point<T>;

/// These convert the text of a scalar. Each throws BadValue, which says what would be right.
SYLAR_API bool toBool(const std::string& text);
SYLAR_API long long toSigned(const std::string& text, long long lowest, long long highest);
SYLAR_API unsigned long long toUnsigned(const std::string& text, unsigned long long highest);
template <std::floating_point T>
SYLAR_API T toFloating(const std::string& text);
template <std::floating_point T>
SYLAR_API std::string fromFloating(T value);

/// Returns the text of a scalar. Throws BadValue if `node` is something else.
SYLAR_API const std::string& scalarText(const YamlNode& node);
/// Returns the parts of a list or a map, or none if `node` is null. Throws BadValue if `node` is something else.
SYLAR_API const std::vector<YamlNode>& listItems(const YamlNode& node);
SYLAR_API const std::vector<YamlNode>& mapItems(const YamlNode& node);
/// Returns the text to report for an exception that is not a BadValue.
SYLAR_API std::string reasonOf(const std::exception& failure);
/// Rethrows the exception that is being handled as a BadValue that knows its place in `node`. std::bad_alloc stays as it is.
[[noreturn]] SYLAR_API void rethrowAt(const YamlNode& node);

/// Throws a BadValue that says that the text is not a value of this type.
[[noreturn]] void refuseTextOf(const std::type_info& type);

/// Writes `from` to a stream and reads a T from it. The T must take all of the text, and blanks are not skipped; otherwise it
/// throws BadValue. Source: boost::lexical_cast.
template <class T, class F>
T throughStream(const F& from) {
  std::stringstream stream;
  if constexpr (std::floating_point<F>) stream.precision(std::numeric_limits<F>::max_digits10);
  stream << from;
  if constexpr (std::same_as<T, std::string>) {
    if (stream) return stream.str();
  } else {
    T to{};
    if (stream >> std::noskipws >> to && stream.peek() == std::stringstream::traits_type::eof()) return to;
  }
  refuseTextOf(typeid(T));
}

/// Converts `node` with `Cast`. Any failure comes out as a BadValue that knows the place. `whole` is true for the value of a
/// setting, whose text is not quoted, and false for an element.
template <class Cast>
auto castNode(const YamlNode& node, bool whole = false) {
  try {
    if constexpr (std::invocable<Cast, const YamlNode&>) {
      return Cast{}(node);
    } else {
      return Cast{}(whole && node.isScalar() ? node.text : toYamlText(node));
    }
  } catch (...) {
    rethrowAt(node);
  }
}

/// Converts a part of a node as castNode() does. `step` is the part's name in messages.
template <class Cast>
auto castItem(const YamlNode& item, const std::string& step) {
  try {
    return castNode<Cast>(item);
  } catch (BadValue& bad) {
    bad.prepend(step);
    throw;
  }
}

/// Returns `value` as a node, through the cast of its type.
template <class T>
YamlNode toNode(const T& value) {
  using Cast = LexicalCast<T, std::string>;
  if constexpr (requires { Cast::toNode(value); }) {
    return Cast::toNode(value);
  } else {
    return parseYaml(Cast{}(value));
  }
}

template <class T>
class SequenceFromText {
 public:
  T operator()(const std::string& text) const { return operator()(parseYaml(text)); }
  T operator()(const YamlNode& node) const {
    T result;
    size_t index = 0;
    for (const YamlNode& item : listItems(node)) {
      result.insert(result.end(),
                    castItem<LexicalCast<std::string, typename T::value_type>>(item, '[' + std::to_string(index++) + ']'));
    }
    return result;
  }
};

template <class T>
class MapFromText {
 public:
  T operator()(const std::string& text) const { return operator()(parseYaml(text)); }
  T operator()(const YamlNode& node) const {
    T result;
    for (const YamlNode& item : mapItems(node)) {
      result.emplace(item.key, castItem<LexicalCast<std::string, typename T::mapped_type>>(item, '.' + item.key));
    }
    return result;
  }
};

template <class T>
class SequenceToText {
 public:
  std::string operator()(const T& value) const { return toYamlText(toNode(value)); }
  static YamlNode toNode(const T& value) {
    YamlNode node;
    node.kind = YamlNode::Kind::kSequence;
    for (const typename T::value_type& item : value) node.items.push_back(detail::toNode(item));
    return node;
  }
};

template <class T>
class MapToText {
 public:
  std::string operator()(const T& value) const { return toYamlText(toNode(value)); }
  static YamlNode toNode(const T& value) {
    YamlNode node;
    node.kind = YamlNode::Kind::kMap;
    for (const auto& [key, item] : value) {
      node.items.push_back(detail::toNode(item));
      node.items.back().key = key;
    }
    return node;
  }
};

}  // namespace detail

/// Converts any type to any other through a stream. The first needs its operator <<, the second its operator >>.
template <class F, class T>
class LexicalCast {
 public:
  T operator()(const F& from) const { return detail::throughStream<T>(from); }
  T operator()(const YamlNode& node) const requires std::same_as<F, std::string> { return operator()(detail::scalarText(node)); }
  static YamlNode toNode(const F& value) requires std::same_as<T, std::string> { return YamlNode::scalar(LexicalCast{}(value)); }
};

template <detail::Number T>
class LexicalCast<std::string, T> {
 public:
  T operator()(const std::string& text) const {
    if constexpr (std::same_as<T, bool>) {
      return detail::toBool(text);
    } else if constexpr (std::floating_point<T>) {
      return detail::toFloating<T>(text);
    } else if constexpr (std::signed_integral<T>) {
      return static_cast<T>(detail::toSigned(text, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else {
      return static_cast<T>(detail::toUnsigned(text, std::numeric_limits<T>::max()));
    }
  }
  T operator()(const YamlNode& node) const { return operator()(detail::scalarText(node)); }
};

template <detail::Number T>
class LexicalCast<T, std::string> {
 public:
  std::string operator()(const T& value) const {
    if constexpr (std::same_as<T, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::floating_point<T>) {
      return detail::fromFloating(value);
    } else {
      return std::to_string(value);
    }
  }
  static YamlNode toNode(const T& value) { return YamlNode::scalar(LexicalCast{}(value)); }
};

template <>
class LexicalCast<std::string, std::string> {
 public:
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(const YamlNode& node) const {
    return node.kind == YamlNode::Kind::kNull ? std::string() : detail::scalarText(node);
  }
  static YamlNode toNode(const std::string& value) { return YamlNode::scalar(value); }
};

template <class T>
class LexicalCast<std::string, std::vector<T>> : public detail::SequenceFromText<std::vector<T>> {};
template <class T>
class LexicalCast<std::string, std::list<T>> : public detail::SequenceFromText<std::list<T>> {};
template <class T>
class LexicalCast<std::string, std::set<T>> : public detail::SequenceFromText<std::set<T>> {};
template <class T>
class LexicalCast<std::string, std::unordered_set<T>> : public detail::SequenceFromText<std::unordered_set<T>> {};
template <class T>
class LexicalCast<std::string, std::map<std::string, T>> : public detail::MapFromText<std::map<std::string, T>> {};
template <class T>
class LexicalCast<std::string, std::unordered_map<std::string, T>>
    : public detail::MapFromText<std::unordered_map<std::string, T>> {};

template <class T>
class LexicalCast<std::vector<T>, std::string> : public detail::SequenceToText<std::vector<T>> {};
template <class T>
class LexicalCast<std::list<T>, std::string> : public detail::SequenceToText<std::list<T>> {};
template <class T>
class LexicalCast<std::set<T>, std::string> : public detail::SequenceToText<std::set<T>> {};
template <class T>
class LexicalCast<std::unordered_set<T>, std::string> : public detail::SequenceToText<std::unordered_set<T>> {};
template <class T>
class LexicalCast<std::map<std::string, T>, std::string> : public detail::MapToText<std::map<std::string, T>> {};
template <class T>
class LexicalCast<std::unordered_map<std::string, T>, std::string>
    : public detail::MapToText<std::unordered_map<std::string, T>> {};

}  // namespace sylar
