// Whether a sanitizer watches that makes each step many times as long: counts are smaller then.
#pragma once

#include "sylar/base/sanitizers.h"

namespace sylar::test {

#if defined(SYLAR_ASAN) || defined(SYLAR_TSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace sylar::test
