#include "sylar/config/type_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace sylar {

std::string detail::demangle(const char* name) {
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name, nullptr, nullptr, nullptr), std::free);
  return readable ? readable.get() : name;
}

}  // namespace sylar
