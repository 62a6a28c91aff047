// Internal. Tells the hook of pthread_create that a thread is the library's own, and is to be a thread whatever the program's
// become.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::sys::detail {

[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool t_makes_own_thread;

}  // namespace sylar::sys::detail
