#include "sylar/http/chunk_decoder.h"

#include <gtest/gtest.h>

namespace sylar::http {
namespace {

struct Decoding {
  HttpLimits limits;
  ChunkDecoder decoder{limits};

  Decoding() { decoder.start(); }
};

// SEC-27
TEST(ChunkDecoder, StopsWhereDataBegins) {
  Decoding d;
  EXPECT_EQ(d.decoder.feed("5\r\nhello\r\n0\r\n\r\n"), 3u);
  EXPECT_EQ(d.decoder.dataLeft(), 5u);
  d.decoder.tookData(2);
  d.decoder.tookData(3);
  EXPECT_EQ(d.decoder.feed("\r\n0\r\n\r\nrest"), 7u);
  EXPECT_TRUE(d.decoder.isDone());
}

// SEC-33: nothing behind the end is taken, wherever the input is cut.
TEST(ChunkDecoder, TakesExactlyTheFraming) {
  const std::string framing = "0;a=b\r\nX: y\r\nZ:  w \r\n\r\n";
  for (size_t cut = 0; cut <= framing.size(); ++cut) {
    Decoding d;
    const std::string rest = framing.substr(cut) + "GET /";
    EXPECT_EQ(d.decoder.feed(framing.substr(0, cut)), cut);
    EXPECT_EQ(d.decoder.feed(rest), framing.size() - cut);
    EXPECT_TRUE(d.decoder.isDone());
    FieldList trailers;
    d.decoder.takeTrailers(trailers);
    ASSERT_EQ(trailers.size(), 2u);
    EXPECT_EQ(trailers.find("x"), "y");
    EXPECT_EQ(trailers.find("z"), "w");
  }
}

// SEC-04: extensions are counted over the whole body, not a chunk.
TEST(ChunkDecoder, CountsExtensionsOfAllChunks) {
  Decoding d;
  const std::string line = "1;" + std::string(254, 'x') + "\r\n";  // 255 bytes of extension
  int chunks = 0;
  for (; chunks < 100 && !d.decoder.isBad(); ++chunks) {
    d.decoder.feed(line);
    if (d.decoder.dataLeft() == 0) break;
    d.decoder.tookData(1);
    d.decoder.feed("\r\n");
  }
  EXPECT_TRUE(d.decoder.isBad());
  EXPECT_EQ(chunks, 4096 / 255);
}

// SEC-04: each limit is of one body.
TEST(ChunkDecoder, BeginsAnewWithTheNextBody) {
  Decoding d;
  for (int body = 0; body < 100; ++body) {
    d.decoder.start();
    const std::string last = "0;" + std::string(254, 'x') + "\r\nX: y\r\n\r\n";
    ASSERT_EQ(d.decoder.feed(last), last.size());
    ASSERT_TRUE(d.decoder.isDone());
    FieldList trailers;
    d.decoder.takeTrailers(trailers);
    ASSERT_EQ(trailers.size(), 1u);
  }
}

TEST(ChunkDecoder, StaysBad) {
  Decoding d;
  d.decoder.feed("x");
  ASSERT_TRUE(d.decoder.isBad());
  EXPECT_EQ(d.decoder.feed("0\r\n\r\n"), 0u);
  EXPECT_TRUE(d.decoder.isBad());
}

}  // namespace
}  // namespace sylar::http
