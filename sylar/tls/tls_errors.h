// Internal. What OpenSSL keeps for the calling thread about its last calls.
#pragma once

#include <string>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Takes all errors from the thread's queue, and returns them in words; "" if there are none.
std::string takeTlsErrors();

}  // namespace sylar::detail
