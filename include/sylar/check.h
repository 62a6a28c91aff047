// Checks for programmer errors. Input that a peer or the operating system controls is never checked with these.
//
//   SYLAR_CHECK(cond)          always on; on failure prints the condition, the place and a backtrace, then aborts
//   SYLAR_CHECK_EQ(a, b) ...   the same, and prints both values (EQ NE LT LE GT GE; integers, enums, pointers)
//   SYLAR_DCHECK...            the same in builds without NDEBUG; elsewhere they compile and do nothing
//   SYLAR_ASSERT(cond)         sylar's spelling of SYLAR_CHECK; macro.h has SYLAR_ASSERT2, which adds a text
//
// Thread safety: usable anywhere. In a signal handler everything up to the backtrace is safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace sylar::detail {

[[noreturn, gnu::cold, gnu::noinline]] void checkFailed(const char* file, int line, const char* what, std::string_view text = {});
[[noreturn, gnu::cold, gnu::noinline]] void checkFailed(const char* file, int line, const char* what, int64_t a, int64_t b);

template <class T>
int64_t printable(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<int64_t>(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

}  // namespace sylar::detail

#define SYLAR_CHECK(cond) \
  (__builtin_expect(static_cast<bool>(cond), 1) ? void() : ::sylar::detail::checkFailed(__FILE__, __LINE__, #cond))

#define SYLAR_CHECK_OP_(op, a, b)                                                                               \
  do {                                                                                                          \
    const auto& check_a_ = (a);                                                                                 \
    const auto& check_b_ = (b);                                                                                 \
    if (__builtin_expect(!(check_a_ op check_b_), 0)) {                                                         \
      ::sylar::detail::checkFailed(__FILE__, __LINE__, #a " " #op " " #b, ::sylar::detail::printable(check_a_), \
                                   ::sylar::detail::printable(check_b_));                                       \
    }                                                                                                           \
  } while (false)

#define SYLAR_CHECK_EQ(a, b) SYLAR_CHECK_OP_(==, a, b)
#define SYLAR_CHECK_NE(a, b) SYLAR_CHECK_OP_(!=, a, b)
#define SYLAR_CHECK_LT(a, b) SYLAR_CHECK_OP_(<, a, b)
#define SYLAR_CHECK_LE(a, b) SYLAR_CHECK_OP_(<=, a, b)
#define SYLAR_CHECK_GT(a, b) SYLAR_CHECK_OP_(>, a, b)
#define SYLAR_CHECK_GE(a, b) SYLAR_CHECK_OP_(>=, a, b)

#ifdef NDEBUG
#define SYLAR_DCHECK(cond) (true ? void() : SYLAR_CHECK(cond))
#define SYLAR_DCHECK_EQ(a, b) (true ? void() : SYLAR_CHECK((a) == (b)))
#else
#define SYLAR_DCHECK(cond) SYLAR_CHECK(cond)
#define SYLAR_DCHECK_EQ(a, b) SYLAR_CHECK_EQ(a, b)
#endif

#define SYLAR_ASSERT(cond) SYLAR_CHECK(cond)
