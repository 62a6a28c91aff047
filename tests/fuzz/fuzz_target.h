// Each fuzz target is one function over bytes that aborts when a promise is broken. libFuzzer calls it in the fuzz preset,
// and replay_main.cc with the files of the corpus everywhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace sylar::fuzz {

/// The ways in which each input is cut: not at all, at each byte, and twice as its own bytes say.
inline std::vector<std::vector<std::string_view>> waysToCut(std::string_view input) {
  std::vector<std::vector<std::string_view>> ways;
  ways.push_back({input});
  ways.emplace_back();
  for (size_t i = 0; i < input.size(); ++i) ways.back().push_back(input.substr(i, 1));
  for (unsigned way = 0; way < 2; ++way) {
    std::seed_seq seed{static_cast<unsigned>(std::hash<std::string_view>{}(input)), way};
    std::minstd_rand random(seed);
    std::vector<std::string_view> pieces;
    for (size_t at = 0; at < input.size(); at += pieces.back().size()) pieces.push_back(input.substr(at, 1 + random() % 16));
    ways.push_back(std::move(pieces));
  }
  return ways;
}

}  // namespace sylar::fuzz
