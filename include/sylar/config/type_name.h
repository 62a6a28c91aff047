// The name of a type, as C++ spells it.
//
// Thread safety: all functions from any thread. May suspend: no.
#pragma once

#include <string>
#include <typeinfo>

#include "sylar/api.h"

namespace sylar {

namespace detail {
SYLAR_API std::string demangle(const char* name);
}

/// Returns the name of `T`, such as "std::vector<int>". The text is never freed. Source: sylar.
template <class T>
const char* TypeToName() {
  static const auto* const name = new std::string(detail::demangle(typeid(T).name()));
  return name->c_str();
}

}  // namespace sylar
