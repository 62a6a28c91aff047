// For tests: calls that report their error by a std::system_error.
#pragma once

#include <system_error>

namespace sylar::test {

/// Returns the error number that `call` throws, or 0.
template <class Call>
int errorOf(Call call) {
  try {
    call();
    return 0;
  } catch (const std::system_error& e) {
    return e.code().value();
  }
}

}  // namespace sylar::test
