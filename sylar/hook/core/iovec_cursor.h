// Internal. A list of buffers that is transferred in pieces.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/check.h"

namespace sylar::detail {

/// The rest of an iovec list. We read the list only after the kernel has accepted it.
class IovecCursor {
 public:
  /// Covers at most the first `limit` bytes of the list.
  IovecCursor(const iovec* parts, size_t count, size_t limit = SIZE_MAX) : m_part(parts), m_end(parts + count), m_limit(limit) {}

  void skip(size_t bytes) {
    SYLAR_DCHECK(bytes <= m_limit);
    m_limit -= bytes;
    m_skip += bytes;
    while (m_part != m_end && m_skip >= m_part->iov_len) m_skip -= (m_part++)->iov_len;
  }
  bool empty() const { return m_part == m_end || m_limit == 0; }

  /// Fills `out` with as many parts as fit, and returns their number.
  template <size_t N>
  size_t fill(iovec (&out)[N]) const {
    return fill(out, N);
  }
  size_t fill(iovec* out, size_t most) const {
    size_t n = 0;
    size_t skip = m_skip, left = m_limit;
    for (const iovec* part = m_part; part != m_end && n < most && left > 0; ++part, ++n) {
      const size_t size = std::min(part->iov_len - skip, left);
      out[n] = {static_cast<char*>(part->iov_base) + skip, size};
      left -= size;
      skip = 0;
    }
    return n;
  }

 private:
  const iovec* m_part;
  const iovec* m_end;
  size_t m_limit;
  size_t m_skip = 0;
};

/// The most bytes that the kernel transfers with one call.
inline constexpr size_t kMaxTransfer = 0x7ffff000;

inline size_t totalSize(const iovec* parts, size_t count) {
  size_t total = 0;
  for (size_t i = 0; i < count && total < kMaxTransfer; ++i) total += parts[i].iov_len;
  return total < kMaxTransfer ? total : kMaxTransfer;
}

}  // namespace sylar::detail
