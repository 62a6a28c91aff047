// sylar's macros: hints for branches, and, from check.h, SYLAR_ASSERT and SYLAR_ASSERT2.
//
//   if (SYLAR_UNLIKELY(size == 0)) return;
#pragma once

#include "sylar/base/check.h"

#define SYLAR_LIKELY(x) __builtin_expect(!!(x), 1)
#define SYLAR_UNLIKELY(x) __builtin_expect(!!(x), 0)
