// sylar's macros: hints for branches, checks with a text, and SYLAR_ASSERT (from check.h).
//
//   if (SYLAR_UNLIKELY(size == 0)) return;
//   SYLAR_ASSERT2(fd >= 0, "fd=" << fd);   as SYLAR_ASSERT, and prints the text; what is streamed is evaluated on failure only
#pragma once

#include <ostream>
#include <sstream>

#include "sylar/check.h"

namespace sylar::detail {

/// Collects the text of a failed check, and ends the process with it.
class FailedCheck {
 public:
  FailedCheck(const char* file, int line, const char* what) : m_file(file), m_line(line), m_what(what) {}
  [[noreturn]] ~FailedCheck() { checkFailed(m_file, m_line, m_what, m_text.view()); }
  FailedCheck(const FailedCheck&) = delete;
  FailedCheck& operator=(const FailedCheck&) = delete;

  std::ostream& text() { return m_text; }
  /// Makes a stream expression void, with an operator that binds weaker than <<.
  struct Void {
    void operator&(const std::ostream&) const {}
  };

 private:
  const char* const m_file;
  const int m_line;
  const char* const m_what;
  std::ostringstream m_text;
};

}  // namespace sylar::detail

#define SYLAR_ASSERT2(cond, message)                                                                           \
  (__builtin_expect(static_cast<bool>(cond), 1)                                                                \
       ? void()                                                                                                \
       : ::sylar::detail::FailedCheck::Void() & ::sylar::detail::FailedCheck(__FILE__, __LINE__, #cond).text() \
                                                    << message)  // NOLINT: it is streamed

#define SYLAR_LIKELY(x) __builtin_expect(!!(x), 1)
#define SYLAR_UNLIKELY(x) __builtin_expect(!!(x), 0)
