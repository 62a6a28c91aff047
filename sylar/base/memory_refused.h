// Internal. The kernel has refused memory, or a call by which the library prepares it.
#pragma once

#include <array>
#include <cstdio>
#include <cstring>
#include <new>

namespace sylar::sys {

/// A std::bad_alloc that tells which call was refused, and why. It needs no memory itself.
class MemoryRefused : public std::bad_alloc {
 public:
  /// `error` is what the call has returned: an errno, whose sign does not matter.
  MemoryRefused(const char* call, int error) noexcept {
    std::snprintf(m_text.data(), m_text.size(), "sylar: %s: %s", call, ::strerrordesc_np(error < 0 ? -error : error));
  }
  const char* what() const noexcept override { return m_text.data(); }

 private:
  std::array<char, 200> m_text{};
};

}  // namespace sylar::sys
