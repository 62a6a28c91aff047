// The slow messages of the latency benchmark: the last byte of a message says what its server does before it echoes it.
#pragma once

#include <string_view>

namespace bench {

enum class Slow : char { kNo = 0, kSleep = 1, kCompute = 2 };

/// How long, of the server's sleep or of its CPU.
constexpr int kSlowMs = 5;

/// Set in the last byte, and where a message may be cut, of messages that ask for nothing.
constexpr char kNeverSlow = 4;

inline bool parseSlow(std::string_view text, Slow& slow) {
  if (text == "none") {
    slow = Slow::kNo;
  } else if (text == "sleep") {
    slow = Slow::kSleep;
  } else if (text == "compute") {
    slow = Slow::kCompute;
  } else {
    return false;
  }
  return true;
}

}  // namespace bench
