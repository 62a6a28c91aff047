#include "sylar/http/request_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>
#include <utility>

#include "memory_stream.h"
#include "sylar/socket.h"
#include "verdict_table.h"

namespace sylar::http {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

// A reader of one connection whose time is in the test's hands.
struct Connection {
  ManualClock clock{1h};
  HttpLimits limits;
  MemorySource source{clock};
  MemorySink sink;
  HttpRequest request;
  RequestReader reader{source, sink, limits, clock};

  std::chrono::nanoseconds passed() const { return std::chrono::nanoseconds(clock.nowNs()) - 1h; }
};

const std::string kGet = table::get("");

void expectSilent(const Verdict& verdict) { EXPECT_EQ(verdict.kind, Verdict::Kind::kSilent) << verdict.why; }
void expectGone(const Verdict& verdict) { EXPECT_EQ(verdict.kind, Verdict::Kind::kGone) << verdict.why; }
void expectRefused(const Verdict& verdict, HttpStatus status) {
  EXPECT_EQ(verdict.kind, Verdict::Kind::kRefused) << verdict.why;
  EXPECT_EQ(verdict.status, status) << verdict.why;
  EXPECT_FALSE(verdict.keep_alive);
}

// SEC-01 to SEC-08, SEC-15
TEST(HttpLimits, AreThePromisedOnesByDefault) {
  const HttpLimits limits;
  EXPECT_EQ(limits.max_request_line, 8192u);
  EXPECT_EQ(limits.max_header_line, 8192u);
  EXPECT_EQ(limits.max_header_bytes, 32768u);
  EXPECT_EQ(limits.max_headers, 100u);
  EXPECT_EQ(limits.max_body, 1048576u);
  EXPECT_EQ(limits.max_bodies, 268435456u);
  EXPECT_EQ(limits.max_peer_bodies, 67108864u);
  EXPECT_EQ(limits.short_body_rate, 16384u);
  EXPECT_EQ(limits.max_chunk_line, 256u);
  EXPECT_EQ(limits.max_chunk_extensions, 4096u);
  EXPECT_EQ(limits.max_trailer_bytes, 8192u);
  EXPECT_EQ(limits.max_params, 256u);
  EXPECT_EQ(limits.max_cookies, 64u);
  EXPECT_EQ(limits.first_byte_timeout, 10s);
  EXPECT_EQ(limits.head_timeout, 15s);
  EXPECT_EQ(limits.idle_timeout, 60s);
  EXPECT_EQ(limits.min_body_rate, 256u);
  EXPECT_EQ(limits.body_grace, 10s);
  EXPECT_EQ(limits.write_timeout, 30s);
  EXPECT_EQ(limits.max_requests, 10000u);
  EXPECT_EQ(limits.max_linger_bytes, 65536u);
  EXPECT_EQ(limits.linger_timeout, 1s);
}

/// Lets others run between the arrival of bytes and its return, as a hooked call may.
class YieldingSource final : public MemorySource {
 public:
  ssize_t read(char* buffer, size_t size, std::chrono::nanoseconds timeout) override {
    const ssize_t count = MemorySource::read(buffer, size, timeout);
    if (count > 0 && meanwhile) std::exchange(meanwhile, nullptr)();
    return count;
  }
  std::function<void()> meanwhile;
};

// Bytes of one connection never get into another one's request, whenever their fibers take turns.
TEST(RequestReader, ReadsItsOwnBytesWhenAnotherConnectionReadsMeanwhile) {
  Connection other;
  other.source.send(table::get("Whose: other\r\n"));
  HttpLimits limits;
  MemorySink sink;
  HttpRequest request;
  YieldingSource source;
  RequestReader reader{source, sink, limits};
  source.send(table::get("Whose: mine\r\n"));
  source.meanwhile = [&] { EXPECT_TRUE(other.reader.read(other.request).ok()); };
  ASSERT_TRUE(reader.read(request).ok());
  EXPECT_EQ(request.getHeader("whose"), "mine");
  EXPECT_EQ(other.request.getHeader("whose"), "other");
}

// SEC-05
TEST(RequestReader, LeavesAPeerThatSaysNothingAfterTenSeconds) {
  Connection c;
  c.source.breakWith(EAGAIN);
  expectSilent(c.reader.read(c.request));
  EXPECT_EQ(c.passed(), 10s);
}

// SEC-05
TEST(RequestReader, LeavesAnIdlePeerAfterAMinute) {
  Connection c;
  c.source.send(kGet);
  c.source.breakWith(EAGAIN);
  ASSERT_TRUE(c.reader.read(c.request).ok());
  expectSilent(c.reader.read(c.request));
  EXPECT_EQ(c.passed(), 60s);
}

// SEC-05
TEST(RequestReader, WaitsNoLongerForAHeadThatDrips) {
  Connection c;
  c.source.sendByteByByte(kGet, 5s);
  expectRefused(c.reader.read(c.request), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_EQ(c.passed(), 5s + 15s);  // the first byte came after 5 s
}

// SEC-05
TEST(RequestReader, AcceptsAHeadThatIsWholeInTime) {
  Connection c;
  c.source.send(kGet.substr(0, 1), 10s);
  c.source.send(kGet.substr(1), 15s);
  EXPECT_TRUE(c.reader.read(c.request).ok());
}

// SEC-05
TEST(RequestReader, GivesAPipelinedHeadItsOwnTime) {
  Connection c;
  c.source.send(kGet + kGet.substr(0, 5));
  c.source.breakWith(EAGAIN);
  ASSERT_TRUE(c.reader.read(c.request).ok());
  c.clock.advance(30s);  // the handler
  expectRefused(c.reader.read(c.request), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_EQ(c.passed(), 30s + 15s);
}

// SEC-06
TEST(RequestReader, LeavesABodyThatStopsAfterTheGrace) {
  Connection c;
  c.source.send(table::length("1000", "x"));
  c.source.breakWith(EAGAIN);
  expectRefused(c.reader.read(c.request), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_EQ(c.passed(), 10s);
}

// SEC-06
TEST(RequestReader, AcceptsABodyAtTheLeastRate) {
  Connection c;
  c.source.send(table::length("25600", ""));
  for (int i = 0; i < 100; ++i) c.source.send(std::string(256, 'x'), 1s);
  ASSERT_TRUE(c.reader.read(c.request).ok()) << c.reader.verdict().why;
  EXPECT_EQ(c.passed(), 100s);
  EXPECT_EQ(c.request.getBody(), std::string(25600, 'x'));
}

// SEC-06
TEST(RequestReader, RefusesABodyBelowTheLeastRate) {
  Connection c;
  c.source.send(table::length("25600", ""));
  for (int i = 0; i < 200; ++i) c.source.send(std::string(128, 'x'), 1s);
  expectRefused(c.reader.read(c.request), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_GE(c.passed(), 19s);  // 10 s of grace, lost at half a second a second
  EXPECT_LE(c.passed(), 21s);
}

/// Reads a body that comes at `rate` bytes a second after its first 8 KiB, while `others` bytes of 2 000 000 are taken.
Verdict bodyBeside(uint64_t others, size_t rate, std::chrono::nanoseconds& took) {
  constexpr size_t kSize = 900'000;
  HttpShared shared;
  shared.limits.max_bodies = 2'000'000;
  EXPECT_TRUE(shared.totals->takeBodyBytes(others, std::nullopt, shared.limits));
  const Socket::ptr socket = Socket::CreateTCPSocket();
  BodyShare share(shared, *socket);
  Connection c;
  c.source.send(table::length(std::to_string(kSize), std::string(8192, 'x')));
  for (size_t sent = 8192; sent < 400'000; sent += rate) c.source.send(std::string(rate, 'x'), 1s);
  c.source.send(std::string(kSize, 'x'));
  EXPECT_TRUE(c.reader.readHead(c.request).ok());
  const Verdict verdict = c.reader.readBody(c.request, &share);
  took = c.passed();
  return verdict;
}

// SEC-63: 257 connections at 300 bytes a second held all room for bodies.
TEST(RequestReader, RefusesASlowBodyWhileTheRoomForBodiesIsShort) {
  std::chrono::nanoseconds took;
  expectRefused(bodyBeside(1'000'000, 300, took), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_GE(took, 10s);
  EXPECT_LE(took, 12s);
  expectRefused(bodyBeside(1'000'000, 8'192, took), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_GE(took, 19s);
  EXPECT_LE(took, 21s);
  EXPECT_TRUE(bodyBeside(1'000'000, 16'384, took).ok()) << "at the rate";
  EXPECT_GE(took, 20s);
  EXPECT_TRUE(bodyBeside(100'000, 300, took).ok()) << "never more than half";
  EXPECT_GE(took, 1000s);
}

// SEC-06: what came fast earns no right to be silent forever.
TEST(RequestReader, RefusesABodyThatStopsBehindAFastBeginning) {
  Connection c;
  c.source.send(table::length("1000000", std::string(900000, 'x')));
  c.source.breakWith(EAGAIN);
  expectRefused(c.reader.read(c.request), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_EQ(c.passed(), 10s);
}

// SEC-06
TEST(RequestReader, RefusesChunkLinesThatDrip) {
  Connection c;
  c.source.send(table::chunks(""));
  c.source.sendByteByByte("5;" + std::string(100, 'x'), 1s);
  expectRefused(c.reader.read(c.request), HttpStatus::REQUEST_TIMEOUT);
  EXPECT_EQ(c.passed(), 10s);
}

// SEC-06: only waiting for the peer counts.
TEST(RequestReader, DoesNotCountTheHandlersTime) {
  Connection c;
  c.source.send(table::length("3", ""));
  c.source.sendByteByByte("abc", 1s);
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  char byte = 0;
  for (const char expected : {'a', 'b', 'c'}) {
    c.clock.advance(60s);
    ASSERT_EQ(c.reader.readBodySome(&byte, 1), 1);
    EXPECT_EQ(byte, expected);
  }
  EXPECT_EQ(c.reader.readBodySome(&byte, 1), 0);
}

TEST(RequestReader, LeavesSilentlyWhenTheConnectionBreaks) {
  for (const std::string& sent : {std::string(), kGet.substr(0, 9), table::length("5", "he"), table::chunks("5\r\nhe")}) {
    Connection c;
    c.source.send(sent);
    c.source.breakWith(ECONNRESET);
    expectGone(c.reader.read(c.request));
  }
}

TEST(RequestReader, AcceptsNothingBehindAnError) {
  Connection c;
  c.source.send("GET / HTTP/1.1\n\r\n\r\n" + kGet);
  expectRefused(c.reader.read(c.request), HttpStatus::BAD_REQUEST);
  expectRefused(c.reader.read(c.request), HttpStatus::BAD_REQUEST);
  EXPECT_FALSE(c.reader.finishBody());

  Connection large;  // what was refused unread looks like a request
  large.source.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + kGet);
  expectRefused(large.reader.read(large.request), HttpStatus::PAYLOAD_TOO_LARGE);
  expectRefused(large.reader.read(large.request), HttpStatus::PAYLOAD_TOO_LARGE);
}

// SEC-33
TEST(RequestReader, ServesPipelinedRequestsInOrder) {
  Connection c;
  std::string all;
  for (int i = 0; i < 100; ++i) all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  c.source.send(all);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(c.reader.read(c.request).ok());
    EXPECT_EQ(c.request.getPath(), "/" + std::to_string(i));
    EXPECT_EQ(c.request.getBody(), "abc");
  }
  expectGone(c.reader.read(c.request));
  EXPECT_EQ(c.reader.requests(), 100u);
}

TEST(RequestReader, HandsOutTheBodyPieceByPiece) {
  for (const std::string& sent :
       {table::length("11", "hello world"), table::chunks("5\r\nhello\r\n6\r\n world\r\n0\r\nSum: 1\r\n\r\n")}) {
    Connection c;
    c.source.send(sent + kGet);
    ASSERT_TRUE(c.reader.readHead(c.request).ok());
    EXPECT_TRUE(c.reader.hasBody());
    std::string body;
    char piece[3];
    ssize_t count = 0;
    while ((count = c.reader.readBodySome(piece, sizeof piece)) > 0) body.append(piece, static_cast<size_t>(count));
    EXPECT_EQ(count, 0);
    EXPECT_EQ(body, "hello world");
    EXPECT_FALSE(c.reader.hasBody());
    EXPECT_TRUE(c.reader.finishBody());
    EXPECT_EQ(c.reader.buffered(), kGet);
  }
}

TEST(RequestReader, LeavesNoFieldsOfAHeadThatItRefuses) {
  Connection c;
  c.source.send("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\nbad header\r\n\r\n");
  expectRefused(c.reader.readHead(c.request), HttpStatus::BAD_REQUEST);
  EXPECT_TRUE(c.request.headers().empty());
}

// SEC-28
TEST(RequestReader, KeepsTrailersApartFromHeaders) {
  Connection c;
  c.source.send(table::chunks("0\r\nX-Sum: 5 \r\nHostile: yes\r\n\r\n"));
  ASSERT_TRUE(c.reader.read(c.request).ok());
  EXPECT_FALSE(c.request.hasHeader("x-sum"));
  ASSERT_EQ(c.request.trailers().size(), 2u);
  EXPECT_EQ(c.request.trailers().find("x-sum"), "5");
}

// SEC-03
TEST(RequestReader, TakesTheRoutesLimitOfABody) {
  Connection c;
  c.source.send(table::length("5", "hello") + table::length("5", "hello"));
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  c.reader.setMaxBody(5);
  EXPECT_TRUE(c.reader.readBody(c.request).ok());
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  c.reader.setMaxBody(4);
  expectRefused(c.reader.readBody(c.request), HttpStatus::PAYLOAD_TOO_LARGE);
  EXPECT_EQ(c.reader.buffered(), "hello") << "refused unread";
}

// SEC-03: a promise of the peer costs no memory.
TEST(RequestReader, GrowsTheBodyWithWhatHasCome) {
  Connection c;
  c.source.send(table::length("1000000", "x"));
  expectGone(c.reader.read(c.request));
  EXPECT_LE(c.request.getBody().capacity(), 8192u);
}

// SEC-03
TEST(RequestReader, ReadsAwayASmallBodyThatNobodyWanted) {
  for (const std::string& sent : {table::length("65536", std::string(65536, 'x')), table::chunks("5\r\nhello\r\n0\r\n\r\n")}) {
    Connection c;
    c.source.send(sent + kGet);
    ASSERT_TRUE(c.reader.readHead(c.request).ok());
    EXPECT_TRUE(c.reader.finishBody());
    EXPECT_TRUE(c.reader.read(c.request).ok());
  }
}

// SEC-03
TEST(RequestReader, ReadsAwayNoLargeBodyAndWaitsNoLongerThanASecond) {
  Connection large;
  large.source.send(table::length("65537", std::string(65537, 'x')) + kGet);
  ASSERT_TRUE(large.reader.readHead(large.request).ok());
  EXPECT_FALSE(large.reader.finishBody());
  expectRefused(large.reader.verdict(), HttpStatus::PAYLOAD_TOO_LARGE);

  Connection chunked;
  chunked.source.send(table::chunks("20000\r\n" + std::string(131072, 'x') + "\r\n0\r\n\r\n"));
  ASSERT_TRUE(chunked.reader.readHead(chunked.request).ok());
  EXPECT_FALSE(chunked.reader.finishBody());
  EXPECT_GE(chunked.source.unread().size(), 60000u);

  Connection slow;
  slow.source.send(table::length("100", "x"));
  slow.source.breakWith(EAGAIN);
  ASSERT_TRUE(slow.reader.readHead(slow.request).ok());
  EXPECT_FALSE(slow.reader.finishBody());
  EXPECT_EQ(slow.passed(), 1s);
  expectRefused(slow.reader.readHead(slow.request), HttpStatus::REQUEST_TIMEOUT);  // never reused

  Connection gone;
  gone.source.send(table::length("100", "x"));
  ASSERT_TRUE(gone.reader.readHead(gone.request).ok());
  EXPECT_FALSE(gone.reader.finishBody());
  expectGone(gone.reader.verdict());
}

// SEC-03
TEST(RequestReader, LingersForSixtyFourKilobytesOrASecond) {
  Connection flood;
  flood.source.send("\n" + std::string(200000, 'x'));
  expectRefused(flood.reader.read(flood.request), HttpStatus::BAD_REQUEST);
  flood.reader.linger();
  EXPECT_GE(flood.source.unread().size(), 100000u);

  Connection drip;
  drip.source.send("\n");
  drip.source.sendByteByByte(std::string(100, 'x'), 300ms);
  expectRefused(drip.reader.read(drip.request), HttpStatus::BAD_REQUEST);
  drip.reader.linger();
  EXPECT_EQ(drip.passed(), 1s);

  Connection polite;
  polite.source.send("\nrest");
  expectRefused(polite.reader.read(polite.request), HttpStatus::BAD_REQUEST);
  polite.reader.linger();
  EXPECT_EQ(polite.source.unread(), "");
}

const std::string kExpecting = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";

// SEC-34
TEST(RequestReader, AsksForABodyThatIsHeldBackWhenItIsWanted) {
  Connection c;
  c.source.send(kExpecting);
  c.source.send("ok");
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  EXPECT_EQ(c.sink.bytes(), "");
  ASSERT_TRUE(c.reader.readBody(c.request).ok());
  EXPECT_EQ(c.sink.bytes(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(c.request.getBody(), "ok");
  EXPECT_TRUE(c.reader.finishBody());
}

// SEC-34
TEST(RequestReader, AsksForNothingThatHasComeOrWasNotHeldBack) {
  for (const std::string& sent : {kExpecting + "ok", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok"s,
                                  table::get("Expect: 100-continue\r\n")}) {
    Connection c;
    c.source.send(sent);
    ASSERT_TRUE(c.reader.read(c.request).ok());
    EXPECT_EQ(c.sink.bytes(), "");
  }
}

// SEC-34
TEST(RequestReader, AsksForABodyBeforeItIsRead) {
  Connection c;
  c.source.send(kExpecting);
  c.source.send("ok");
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  EXPECT_TRUE(c.reader.openBody());
  EXPECT_TRUE(c.reader.openBody());
  EXPECT_EQ(c.sink.bytes(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(c.reader.readBody(c.request).ok());
  EXPECT_EQ(c.request.getBody(), "ok");
  EXPECT_EQ(c.sink.calls(), 1u);
}

// SEC-34
TEST(RequestReader, DoesNotAskWithinAnAnswer) {
  Connection c;
  c.source.send(kExpecting);
  c.source.send("ok");
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  c.reader.answerBegun();
  ASSERT_TRUE(c.reader.readBody(c.request).ok());
  EXPECT_EQ(c.sink.bytes(), "");
}

// SEC-34
TEST(RequestReader, EndsTheConnectionWhenABodyThatIsHeldBackIsNotWanted) {
  Connection c;
  c.source.send(kExpecting);
  c.source.send(kGet);
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  EXPECT_FALSE(c.reader.finishBody());
  EXPECT_EQ(c.source.unread(), kGet) << "nothing was taken for the body";
}

// SEC-34
TEST(RequestReader, DoesNotAskForABodyThatIsTooLarge) {
  Connection c;
  c.source.send(kExpecting);
  ASSERT_TRUE(c.reader.readHead(c.request).ok());
  c.reader.setMaxBody(1);
  expectRefused(c.reader.readBody(c.request), HttpStatus::PAYLOAD_TOO_LARGE);
  EXPECT_EQ(c.sink.bytes(), "");
}

// SEC-35
TEST(RequestReader, LeavesBytesBehindAnUpgradeToTheNextProtocol) {
  Connection c;
  c.source.send(table::get("Connection: upgrade\r\nUpgrade: websocket\r\n") + "\n\0bytes"s);
  ASSERT_TRUE(c.reader.read(c.request).ok());
  EXPECT_TRUE(c.request.isWebsocket());
  EXPECT_EQ(c.reader.takeBuffered(), "\n\0bytes"s);
  EXPECT_EQ(c.reader.buffered(), "");
}

// SEC-30
TEST(RequestReader, LetsTheHostOfTheTargetWin) {
  for (const std::string& sent : {"GET http://b:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n"s, "GET http://b:81/x?y HTTP/1.0\r\n\r\n"s}) {
    Connection c;
    c.source.send(sent);
    ASSERT_TRUE(c.reader.read(c.request).ok());
    EXPECT_EQ(c.request.getHeader("host"), "b:81");
    EXPECT_EQ(c.request.getPath(), "/x");
    EXPECT_EQ(c.request.getQuery(), "y");
  }
}

TEST(RequestReader, UnderstandsAllPartsOfAHead) {
  Connection c;
  c.source.send("PUT /a%20b?c=d?e HTTP/1.1\r\nHost: a\r\nX-Two:  v 1\t\r\nx-two:v2\r\nEmpty:\r\n\r\n");
  ASSERT_TRUE(c.reader.read(c.request).ok());
  EXPECT_EQ(c.request.getMethod(), HttpMethod::PUT);
  EXPECT_EQ(c.request.getVersion(), 0x11);
  EXPECT_EQ(c.request.getPath(), "/a%20b");
  EXPECT_EQ(c.request.getQuery(), "c=d?e");
  EXPECT_FALSE(c.request.isClose());
  EXPECT_FALSE(c.request.isWebsocket());
  EXPECT_EQ(c.request.getHeader("X-TWO"), "v 1, v2");
  EXPECT_TRUE(c.request.hasHeader("empty"));
  EXPECT_EQ(c.request.headers().size(), 4u);
}

// A request owns its bytes: it may outlive the connection's next one.
TEST(RequestReader, KeepsAnEarlierRequestAsItWas) {
  Connection c;
  c.source.send("GET /1 HTTP/1.1\r\nHost: one\r\n\r\nGET /2 HTTP/1.1\r\nHost: two\r\n\r\n");
  HttpRequest first;
  ASSERT_TRUE(c.reader.read(first).ok());
  ASSERT_TRUE(c.reader.read(c.request).ok());
  EXPECT_EQ(first.getHeader("host"), "one");
  EXPECT_EQ(c.request.getHeader("host"), "two");
}

// SEC-05: an attacker's dripping costs no more than a read each. Byte by byte, the largest head takes as many reads as it has
// bytes, and the buffer is never larger than twice the head.
TEST(RequestReader, TakesTheLargestHeadByteByByte) {
  Connection c;
  const std::string head = table::get(table::times(3, table::headerOf(8192)) + table::headerOf(8175));
  c.source.sendByteByByte(head);
  ASSERT_TRUE(c.reader.read(c.request).ok());
  EXPECT_EQ(c.source.reads(), head.size());
}

}  // namespace
}  // namespace sylar::http
