#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "sylar/http/input_buffer.h"
#include "sylar/http/output_buffer.h"

namespace sylar::http {
namespace {

// The bytes come out in the order in which they were filled in, however the block grows and moves.
TEST(InputBuffer, KeepsTheBytesInOrder) {
  std::mt19937 random(7);
  InputBuffer buffer;
  std::string expected;
  char next = 0;
  for (int step = 0; step < 2000; ++step) {
    const std::span<char> room = buffer.room();
    ASSERT_FALSE(room.empty());
    const size_t filled = std::min<size_t>(room.size(), random() % 700);
    for (size_t i = 0; i < filled; ++i) expected.push_back(room[i] = next++);
    buffer.filled(filled);
    ASSERT_EQ(buffer.data(), expected);
    const size_t used = std::min<size_t>(expected.size(), random() % 800);
    buffer.consume(used);
    expected.erase(0, used);
    ASSERT_EQ(buffer.data(), expected);
    ASSERT_EQ(buffer.empty(), expected.empty());
    buffer.shrink();
    ASSERT_EQ(buffer.data(), expected);
  }
}

TEST(InputBuffer, HasItsUsualSizeAgainAfterALargeHead) {
  InputBuffer buffer;
  EXPECT_EQ(buffer.room().size(), InputBuffer::kUsualSize);
  while (buffer.data().size() < 10'000) buffer.filled(buffer.room().size());
  buffer.consume(buffer.data().size());
  buffer.shrink();
  EXPECT_EQ(buffer.room().size(), InputBuffer::kUsualSize);
}

// The usual block serves one buffer after the other.
TEST(InputBuffer, PassesItsMemoryOn) {
  InputBuffer first, second;
  const char* const block = first.room().data();
  EXPECT_NE(second.room().data(), block);
  second.shrink();
  first.shrink();
  EXPECT_EQ(second.room().data(), block);
}

TEST(OutputBuffer, HoldsMoreThanOneBlock) {
  OutputBuffer buffer;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string number = std::to_string(i);
    buffer.append(number, ": ", "", "\r\n");
    expected += number + ": \r\n";
  }
  EXPECT_EQ(std::string_view(buffer.data(), buffer.size()), expected);
  buffer.clear();
  EXPECT_EQ(buffer.size(), 0u);
  buffer.append(std::string(5000, 'x'));
  EXPECT_EQ(buffer.size(), 5000u);
}

}  // namespace
}  // namespace sylar::http
