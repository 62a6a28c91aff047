// Unmodified iconv in many fibers of which some fail, each in a locale of its own. The conversions have a state, and a pipe feeds
// them in pieces.
#include <iconv.h>
#include <langinfo.h>
#include <locale.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/integration/clients/matrix.h"

namespace sylar::test {
namespace {

struct Conversion {
  const char* from;
  const char* to;
  std::string text;
};

const Conversion kConversions[] = {
    {"ISO-2022-JP", "UTF-8", "a\x1b$B$3$s$K$A$O\x1b(Bb"},
    {"UTF-8", "ISO-2022-JP", "a\u3053\u3093b\u306b"},
    {"UTF-8", "ISO-2022-KR", "a\ud55c\uae00b"},
    {"UTF-7", "UTF-8", "Hi Mom -+Jjo--!"},
    {"UTF-16", "UTF-8",
     std::string("\xff\xfe"
                 "a\0\x53\x30"
                 "b\0",
                 8)},
    {"UTF-8", "UTF-16LE", "cut \xe3\x81"},            // ends in the middle
    {"UTF-8", "ISO-8859-1", "bad \xff there"},        // is none
    {"UTF-8", "ISO-8859-1", "no such \u3053 there"},  // cannot be converted
    {"UTF-8", "", "\u3053 as the locale has it"},
    {"UTF-8", "NOTHING-8", "none"},
};

const Conversion& conversionOf(size_t i) { return kConversions[i / 2 % std::size(kConversions)]; }

std::string toHex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += "0123456789abcdef"[byte / 16], text += "0123456789abcdef"[byte % 16];
  return text + '\n';
}

/// Converts what comes from the pipe, until it ends. `feed` writes a byte for a neighbour each time.
template <class Feed>
std::string convert(Users& us, const Conversion& conversion, int fd, Feed feed) {
  const iconv_t state = ::iconv_open(conversion.to, conversion.from);
  const bool refused = state == iconv_t(-1);
  us.meet();
  const int why = errno;
  feed();
  if (refused) return std::strerror(why);
  std::string left, out;
  int error = 0;
  for (char byte; (error == 0 || error == EINVAL) && ::read(fd, &byte, 1) == 1;) {
    feed();
    left += byte;
    char* from = left.data();
    size_t from_size = left.size();
    char bytes[100];
    char* to = bytes;
    size_t to_size = sizeof bytes;
    error = ::iconv(state, &from, &from_size, &to, &to_size) == size_t(-1) ? errno : 0;
    out.append(bytes, to);
    left.erase(0, left.size() - from_size);
  }
  char end[100];
  char* to = end;
  size_t to_size = sizeof end;
  EXPECT_NE(::iconv(state, nullptr, nullptr, &to, &to_size), size_t(-1));  // back to the first state
  EXPECT_EQ(::iconv_close(state), 0);
  return toHex(out.append(end, to)) + toHex(left) + std::strerror(error);
}

TEST(Iconv, SeesInFibersWhatItSeesInThreads) {
  int pipes[Users::kSize][2];
  seesInFibersWhatItSeesInThreads(12, [&](Users& us, size_t i) {
    EXPECT_EQ(::pipe(pipes[i]), 0);
    const locale_t locale = ::newlocale(LC_ALL_MASK, i % 2 == 0 ? "C" : "C.UTF-8", nullptr);
    ::uselocale(locale);
    us.meet();
    const size_t next = (i + 1) % Users::kSize;
    const std::string& text = conversionOf(next).text;
    size_t fed = 0;
    const auto feed = [&] {
      if (fed < text.size()) {
        EXPECT_EQ(::write(pipes[next][1], text.data() + fed, 1), 1);
      } else if (fed == text.size()) {
        ::close(pipes[next][1]);
      }
      ++fed;
    };
    std::string seen = std::string(::nl_langinfo(CODESET)) + ' ' + std::to_string(MB_CUR_MAX) + '\n';
    seen += convert(us, conversionOf(i), pipes[i][0], feed);
    while (fed <= text.size()) feed();
    us.meet();
    ::uselocale(LC_GLOBAL_LOCALE);
    ::freelocale(locale);
    ::close(pipes[i][0]);
    return seen;
  });
}

}  // namespace
}  // namespace sylar::test
