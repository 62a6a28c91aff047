// Internal. Makes the library's own settings.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "sylar/base/internal.h"
#include "sylar/config.h"

namespace sylar::detail {

/// Returns the setting of that name. If the program has already made one of another type, which is logged, returns a separate one
/// that Config does not find, so the library goes on with its default.
template <class T>
typename ConfigVar<T>::ptr librarySetting(const std::string& name, const T& value, const std::string& description,
                                          const std::type_identity_t<ConfigCheck<T>>& check = nullptr,
                                          SourceLocation location = SourceLocation::here()) {
  auto var = Config::Lookup<T>(name, value, description, check, location);
  if (var == nullptr) var = std::make_shared<ConfigVar<T>>(name, value, description, check, location);
  var->setLive(false);
  return var;
}

}  // namespace sylar::detail
