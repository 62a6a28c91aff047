// Internal. A list of buffers that is transferred in pieces.
#pragma once

#include <sys/uio.h>

#include <cstddef>

namespace sylar {

/// What is left of an iovec list. Read by us only after the kernel has accepted it.
class IovecRest {
 public:
  IovecRest(const iovec* parts, size_t count) : m_part(parts), m_end(parts + count) {}

  void skip(size_t bytes) {
    m_skip += bytes;
    while (m_part != m_end && m_skip >= m_part->iov_len) m_skip -= (m_part++)->iov_len;
  }
  bool empty() const { return m_part == m_end; }

  /// As many parts as fit; the number of them.
  template <size_t N>
  size_t fill(iovec (&out)[N]) const {
    size_t n = 0;
    for (const iovec* part = m_part; part != m_end && n < N; ++part, ++n) out[n] = *part;
    if (n == 0) return 0;
    out[0].iov_base = static_cast<char*>(out[0].iov_base) + m_skip;
    out[0].iov_len -= m_skip;
    return n;
  }

 private:
  const iovec* m_part;
  const iovec* m_end;
  size_t m_skip = 0;
};

/// What the kernel transfers at most with one call.
inline constexpr size_t kMaxTransfer = 0x7ffff000;

inline size_t totalSize(const iovec* parts, size_t count) {
  size_t total = 0;
  for (size_t i = 0; i < count && total < kMaxTransfer; ++i) total += parts[i].iov_len;
  return total < kMaxTransfer ? total : kMaxTransfer;
}

}  // namespace sylar
