// The keys are hashed by SipHash-1-3.
//
// Clients choose the keys, so with a known hash they could choose thousands that fall into one bucket, and each lookup would
// walk through all of them. A hash that is keyed with a secret of the process does not let them. Source: Aumasson and
// Bernstein, "SipHash: a fast short-input PRF"; Redis uses SipHash-1-2.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ttlkv {

class SipHash {
 public:
  constexpr SipHash(uint64_t key_0, uint64_t key_1) : m_key_0(key_0), m_key_1(key_1) {}
  /// Returns the hash with the secret of this process, which is drawn at its start.
  static const SipHash& ofProcess();

  uint64_t operator()(std::string_view bytes) const {
    State state{m_key_0 ^ 0x736f6d6570736575, m_key_1 ^ 0x646f72616e646f6d, m_key_0 ^ 0x6c7967656e657261,
                m_key_1 ^ 0x7465646279746573};
    const uint64_t size = bytes.size() << 56;
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), 8);
      state.take(word);
    }
    uint64_t last = 0;
    if (!bytes.empty()) std::memcpy(&last, bytes.data(), bytes.size());
    state.take(size | last);
    state.v2 ^= 0xff;
    for (int i = 0; i < 3; ++i) state.round();
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
  }

 private:
  struct State {
    uint64_t v0, v1, v2, v3;

    void take(uint64_t word) {
      v3 ^= word;
      round();
      v0 ^= word;
    }
    void round() {
      v0 += v1, v1 = std::rotl(v1, 13), v1 ^= v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16), v3 ^= v2;
      v0 += v3, v3 = std::rotl(v3, 21), v3 ^= v0;
      v2 += v1, v1 = std::rotl(v1, 17), v1 ^= v2, v2 = std::rotl(v2, 32);
    }
  };

  uint64_t m_key_0, m_key_1;
};

}  // namespace ttlkv
