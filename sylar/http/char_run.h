// Internal. Runs of bytes of one class: how far do they reach? Sixteen bytes at once where the processor has SSE2, which each
// x86-64 has, and else one by one.
#pragma once

#include <cstdint>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>

#include <bit>
#endif

#include "sylar/base/internal.h"
#include "sylar/http/char_class.h"

namespace sylar::http::detail {

#ifdef __SSE2__

/// Returns sixteen bits, one for each byte of `block`: set if the byte is of the class `kMask`. For tokens a bit that is not set
/// says nothing, because only letters, digits and '-' are recognised.
template <uint8_t kMask>
[[gnu::always_inline]] inline unsigned commonOf(__m128i block) {
  const auto is = [block](char c) { return _mm_cmpeq_epi8(block, _mm_set1_epi8(c)); };
  // Both compare signed bytes, so a byte >= 0x80 is in no range.
  const auto between = [](__m128i bytes, char first, char last) {
    return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(first - 1))),
                         _mm_cmplt_epi8(bytes, _mm_set1_epi8(static_cast<char>(last + 1))));
  };
  const auto bits = [](__m128i bytes) { return static_cast<unsigned>(_mm_movemask_epi8(bytes)); };
  if constexpr (kMask == kValueChar) {
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
    return ~bits(_mm_or_si128(_mm_andnot_si128(is('\t'), control), is(0x7f))) & 0xffff;
  } else if constexpr (kMask == kTargetChar) {
    return bits(_mm_andnot_si128(is('#'), between(block, 0x21, 0x7e)));
  } else {
    static_assert(kMask == kTokenChar);
    const __m128i letters = between(_mm_or_si128(block, _mm_set1_epi8(0x20)), 'a', 'z');
    return bits(_mm_or_si128(_mm_or_si128(letters, is('-')), between(block, '0', '9')));
  }
}

#endif

/// Does what skipChars() does.
template <uint8_t kMask>
[[gnu::always_inline]] inline const char* skipRun(const char* at, const char* end) {
#ifdef __SSE2__
  while (end - at >= 16) {
    const unsigned common = commonOf<kMask>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    at += std::countr_one(common);
    if (common == 0xffff) continue;
    if (kMask != kTokenChar || !isChar(*at, kMask)) return at;
    break;
  }
#endif
  return skipChars(at, end, kMask);
}

/// Does what allChars() does.
template <uint8_t kMask>
bool allOf(std::string_view text) {
#ifdef __SSE2__
  if (text.size() - 8 <= 8) {  // 8 to 16: its first and its last eight bytes
    const auto half = [](const char* at) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)); };
    if (commonOf<kMask>(_mm_unpacklo_epi64(half(text.data()), half(text.data() + text.size() - 8))) == 0xffff) return true;
  }
#endif
  const char* const end = text.data() + text.size();
  return !text.empty() && skipRun<kMask>(text.data(), end) == end;
}

}  // namespace sylar::http::detail
