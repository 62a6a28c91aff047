// sylar's access to parameters, which are stored as text by name, as values of a type.
//
//   const std::map<std::string, std::string> params = ...;
//   const int page = sylar::GetParamValue(params, "page", 1);
//
// Thread safety: that of the map. May suspend: no.
#pragma once

#include <exception>
#include <string>

#include "sylar/config/lexical_cast.h"

namespace sylar {

/// Converts the text of `key` in `map` into `value`. Returns false and leaves `value` unchanged if there is none or LexicalCast
/// cannot convert it.
template <class V, class Map, class Key>
bool CheckGetParamValue(const Map& map, const Key& key, V& value) {
  const auto found = map.find(key);
  if (found == map.end()) return false;
  try {
    value = LexicalCast<std::string, V>()(found->second);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// Returns the value of `key` in `map`, or `otherwise` if there is none that can be converted.
template <class V, class Map, class Key>
V GetParamValue(const Map& map, const Key& key, const V& otherwise = V()) {
  V value = otherwise;
  CheckGetParamValue(map, key, value);
  return value;
}

}  // namespace sylar
