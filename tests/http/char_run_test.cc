#include "sylar/http/char_run.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "guarded_text.h"

namespace sylar::http {
namespace {

// Puts each byte at each place of a run of `usual`, at the end of the memory, and compares with the table.
template <uint8_t kMask>
void expectSameAsTable(char usual) {
  GuardedText guarded(64);
  for (size_t size = 0; size <= 50; ++size) {
    for (size_t place = 0; place < size; ++place) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string text(size, usual);
        text[place] = static_cast<char>(byte);
        const std::string_view run = guarded.put(text);
        const char* const end = run.data() + run.size();
        ASSERT_EQ(skipRun<kMask>(run.data(), end) - run.data(), isChar(text[place], kMask) ? size : place) << byte;
        ASSERT_EQ(allOf<kMask>(run), isChar(text[place], kMask)) << byte;
      }
    }
    const std::string_view run = guarded.put(std::string(size, usual));
    ASSERT_EQ(allOf<kMask>(run), size > 0);
  }
}

TEST(CharRun, OfTokensIsThatOfTheTable) { expectSameAsTable<kTokenChar>('x'); }
TEST(CharRun, OfTargetsIsThatOfTheTable) { expectSameAsTable<kTargetChar>('/'); }
TEST(CharRun, OfValuesIsThatOfTheTable) { expectSameAsTable<kValueChar>(' '); }

// A byte that has no place of its own in the vector is looked up, and the run goes on behind it.
TEST(CharRun, GoesOnBehindARareByte) {
  const std::string text = "x-some_header!of|rare~bytes-and-more-than-two-blocks-of-them: value";
  EXPECT_EQ(skipRun<kTokenChar>(text.data(), text.data() + text.size()) - text.data(), text.find(':'));
}

}  // namespace
}  // namespace sylar::http
