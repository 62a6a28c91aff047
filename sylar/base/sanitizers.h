// Internal. Defines SYLAR_ASAN or SYLAR_TSAN if the file is compiled with that sanitizer, with GCC or Clang.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SYLAR_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define SYLAR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SYLAR_ASAN 1
#elif __has_feature(thread_sanitizer)
#define SYLAR_TSAN 1
#endif
#endif

/// Marks functions that AddressSanitizer must leave as they are, because they leave their stack.
#ifdef SYLAR_ASAN
#define SYLAR_UNINSTRUMENTED [[gnu::no_sanitize_address]]
#else
#define SYLAR_UNINSTRUMENTED
#endif
