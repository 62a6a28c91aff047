#include "sip_hash.h"

#include <random>

namespace ttlkv {

const SipHash& SipHash::ofProcess() {
  static const SipHash hash = [] {
    std::random_device device;
    const auto word = [&device] { return uint64_t{device()} << 32 | device(); };
    const uint64_t first = word();
    return SipHash(first, word());
  }();
  return hash;
}

}  // namespace ttlkv
