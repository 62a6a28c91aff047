// A PooledBuffer that sees that it is taken and given back in turn.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "sylar/hook/fd/batched_calls.h"

namespace sylar::test {

class CountedBuffer final : public PooledBuffer {
 public:
  char* take() noexcept override {
    EXPECT_FALSE(held);
    if (refuses) return nullptr;
    held = true;
    ++taken;
    return m_bytes;
  }
  void giveBack() noexcept override {
    EXPECT_TRUE(held);
    held = false;
  }
  std::string_view bytes(ssize_t count) const { return {m_bytes, static_cast<size_t>(count)}; }

  bool held = false;
  bool refuses = false;
  int taken = 0;

 private:
  char m_bytes[kSize] = {};
};

}  // namespace sylar::test
