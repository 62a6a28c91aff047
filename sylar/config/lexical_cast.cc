#include "sylar/config/lexical_cast.h"

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <new>
#include <string_view>
#include <system_error>

#include <boost/lexical_cast/bad_lexical_cast.hpp>

#include "sylar/base/ascii.h"
#include "sylar/config/config_error.h"
#include "sylar/config/type_name.h"

namespace sylar::detail {
namespace {

struct Integral {
  bool valid = false;  // the text is an integer
  bool fits = false;   // its magnitude has 64 bits
  bool negative = false;
  unsigned long long magnitude = 0;
};

Integral toNumber(std::string_view text) {
  Integral number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) base = 16;
  if (text.starts_with("0o")) base = 8;
  if (base != 10) text.remove_prefix(2);
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number.magnitude, base);
  number.valid = !text.empty() && text[0] != '-' && stopped == end && error != std::errc::invalid_argument;
  number.fits = error == std::errc();
  return number;
}

/// Returns the part of `node` that stands in line `line` of its YAML text, or null, and puts its name before `path`. `read` is
/// that text, parsed again.
const YamlNode* findInLine(const YamlNode& read, const YamlNode& node, int line, std::string& path) {
  if (read.items.empty()) return read.line == line ? &node : nullptr;
  for (size_t i = 0; i < std::min(read.items.size(), node.items.size()); ++i) {
    const YamlNode* const found = findInLine(read.items[i], node.items[i], line, path);
    if (found == nullptr) continue;
    path.insert(0, node.isMap() ? '.' + node.items[i].key : fmt::format("[{}]", i));
    return found;
  }
  return nullptr;
}

/// Describes the exception of a cast that gave the text of `node` to yaml-cpp, with the part of `node` that it concerns.
BadValue badText(const YAML::Exception& failure, const YamlNode& node) {
  std::string path;
  const YamlNode* part = nullptr;
  if (!failure.mark.is_null()) part = findInLine(parseYaml(toYamlText(node)), node, failure.mark.line + 1, path);
  std::string reason = failure.msg;
  if (dynamic_cast<const YAML::BadConversion*>(&failure) != nullptr) {
    reason = part == nullptr ? "a part of it is missing or of the wrong type" : "is not of the type that is wanted here";
  }
  BadValue bad(reason);
  bad.setNode(part == nullptr ? node : *part);
  bad.prepend(path);
  return bad;
}

std::string noTextOf(const std::type_info& type) { return fmt::format("no text of a {}", demangle(type.name())); }

}  // namespace

bool toBool(const std::string& text) {
  const std::string lower = asciiLower(text);
  for (const char* word : {"true", "yes", "on", "1"}) {
    if (lower == word) return true;
  }
  for (const char* word : {"false", "no", "off", "0"}) {
    if (lower == word) return false;
  }
  throw BadValue("expected true or false");
}

long long toSigned(const std::string& text, long long lowest, long long highest) {
  const Integral number = toNumber(text);
  const auto bound = number.negative ? 0ULL - static_cast<unsigned long long>(lowest) : static_cast<unsigned long long>(highest);
  if (!number.valid || !number.fits || number.magnitude > bound) {
    throw BadValue(fmt::format("expected an integer from {} to {}", lowest, highest));
  }
  return static_cast<long long>(number.negative ? 0ULL - number.magnitude : number.magnitude);
}

unsigned long long toUnsigned(const std::string& text, unsigned long long highest) {
  const Integral number = toNumber(text);
  const bool below_zero = number.negative && number.magnitude > 0;
  if (!number.valid || !number.fits || below_zero || number.magnitude > highest) {
    throw BadValue(fmt::format("expected an integer from 0 to {}", highest));
  }
  return number.magnitude;
}

template <std::floating_point T>
T toFloating(const std::string& text) {
  std::string plain = text;
  if (plain.starts_with('+') && !plain.starts_with("+-")) plain.erase(0, 1);
  const size_t dot = plain.starts_with('-') ? 1 : 0;
  for (const char* word : {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"}) {  // YAML's spellings
    if (plain.compare(dot, std::string::npos, word) == 0) {
      plain.erase(dot, 1);
      break;
    }
  }
  T value{};
  const char* const end = plain.data() + plain.size();
  const auto [stopped, error] = std::from_chars(plain.data(), end, value);
  if (stopped != end || error == std::errc::invalid_argument) throw BadValue("expected a number");
  if (error != std::errc()) {
    throw BadValue(
        fmt::format("expected a number of magnitude {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  return value;
}
template float toFloating<float>(const std::string&);
template double toFloating<double>(const std::string&);
template long double toFloating<long double>(const std::string&);

template <std::floating_point T>
std::string fromFloating(T value) {
  return fmt::format("{}", value);
}
template std::string fromFloating<float>(float);
template std::string fromFloating<double>(double);
template std::string fromFloating<long double>(long double);

const std::string& scalarText(const YamlNode& node) {
  if (node.isScalar()) return node.text;
  throw BadValue("expected a single value, found " + node.describe());
}

const std::vector<YamlNode>& listItems(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kSequence || node.kind == YamlNode::Kind::kNull) return node.items;
  throw BadValue(fmt::format("expected a list (lines of '- value'), found {}", node.describe()));
}

const std::vector<YamlNode>& mapItems(const YamlNode& node) {
  if (node.isMap() || node.kind == YamlNode::Kind::kNull) return node.items;
  throw BadValue(fmt::format("expected a map (lines of 'key: value'), found {}", node.describe()));
}

std::string reasonOf(const std::exception& failure) {
  if (const auto* cast = dynamic_cast<const boost::bad_lexical_cast*>(&failure)) {  // from a cast of the program
    return noTextOf(cast->target_type());
  }
  if (const auto* yaml = dynamic_cast<const YAML::Exception*>(&failure)) return yaml->msg;
  return failure.what();
}

void rethrowAt(const YamlNode& node) {
  try {
    throw;
  } catch (BadValue& bad) {
    bad.setNode(node);
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const YAML::Exception& failure) {
    throw badText(failure, node);
  } catch (const std::exception& failure) {
    BadValue bad(reasonOf(failure));
    bad.setNode(node);
    throw bad;
  } catch (...) {
    BadValue bad("the cast of this setting's type threw something that is no std::exception");
    bad.setNode(node);
    throw bad;
  }
}

void refuseTextOf(const std::type_info& type) { throw BadValue(noTextOf(type)); }

}  // namespace sylar::detail
