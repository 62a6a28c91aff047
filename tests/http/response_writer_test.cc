#include "sylar/http/response_writer.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "memory_stream.h"
#include "sylar/http/http_date.h"

namespace sylar::http {
namespace {

using namespace std::string_literals;

time_t fixedTime(time_t*) { return 784111777; }
const std::string kDate = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

struct Writing {
  MemorySink sink;
  ResponseWriter writer{sink, &fixedTime};
  HttpRequest request{0x11, false};
  HttpResponse response{0x11, false};

  std::string write() {
    EXPECT_TRUE(writer.write(request, response));
    return sink.take();
  }
};

TEST(ResponseWriter, WritesStatusHeadersAndBodyWithOneCall) {
  Writing w;
  w.response.setHeader("Content-Type", "text/plain");
  w.response.setBody("hello");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + kDate + "content-length: 5\r\n\r\nhello");
  EXPECT_EQ(w.sink.calls(), 1u);
  EXPECT_EQ(w.sink.lastParts(), 1u);
  EXPECT_TRUE(w.writer.isKeepAlive());
}

TEST(ResponseWriter, WritesALargeBodyWithoutACopyAndStillWithOneCall) {
  Writing w;
  w.response.setBody(std::string(100000, 'x'));
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 100000\r\n\r\n" + std::string(100000, 'x'));
  EXPECT_EQ(w.sink.calls(), 1u);
  EXPECT_EQ(w.sink.lastParts(), 2u);
}

// CD-N4
TEST(ResponseWriter, FramesAnEmptyBody) {
  Writing w;
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 0\r\n\r\n");
}

TEST(ResponseWriter, KeepsOrClosesAsBothSidesWish) {
  struct {
    uint8_t version;
    bool request_closes, response_closes, keeps;
    const char* line;
  } cases[] = {
      {0x11, false, false, true, ""},
      {0x11, true, false, false, "connection: close\r\n"},
      {0x11, false, true, false, "connection: close\r\n"},
      {0x10, false, false, true, "connection: keep-alive\r\n"},
      {0x10, true, true, false, "connection: close\r\n"},
      {0x10, false, true, false, "connection: close\r\n"},
  };
  for (const auto& c : cases) {
    Writing w;
    w.request = HttpRequest(c.version, c.request_closes);
    w.response = HttpResponse(c.version, c.response_closes);
    EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 0\r\n" + c.line + "\r\n");
    EXPECT_EQ(w.writer.isKeepAlive(), c.keeps);
  }
}

// SEC-36
TEST(ResponseWriter, SendsNoBodyWhereThereIsNone) {
  for (const auto status : {HttpStatus::NO_CONTENT, HttpStatus::NOT_MODIFIED, HttpStatus::SWITCHING_PROTOCOLS}) {
    Writing w;
    w.response.setStatus(status);
    w.response.setBody("hello");
    const std::string bytes = w.write();
    EXPECT_EQ(bytes.find("content-length"), std::string::npos) << bytes;
    EXPECT_TRUE(bytes.ends_with("\r\n\r\n")) << bytes;
  }
  Writing w;
  w.request.setMethod(HttpMethod::HEAD);
  w.response.setBody("hello");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 5\r\n\r\n");
}

TEST(ResponseWriter, SaysTheLengthThatAHandlerGivesToHead) {
  Writing w;
  w.request.setMethod(HttpMethod::HEAD);
  w.response.setHeader("Content-Length", "1234");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 1234\r\n\r\n");
  w.response.headerList().add("Content-Length", "5");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 1234\r\n\r\n") << "one of them";
  w.response.setHeader("Content-Length", "99999999999999999999");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 0\r\n\r\n");
  w.response.setHeader("Content-Length", "12x");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 0\r\n\r\n");
}

// SEC-36: a handler cannot lie about the framing.
TEST(ResponseWriter, FramesWhatItSendsWhateverTheHandlerSaid) {
  Writing w;
  w.response.setHeader("Content-Length", "100");
  w.response.setHeader("Transfer-Encoding", "chunked");
  w.response.setHeader("Connection", "keep-alive, x");
  w.response.setBody("hello");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 5\r\n\r\nhello");
}

TEST(ResponseWriter, ClosesWhenTheHandlerSaysSoInAHeader) {
  Writing w;
  w.response.setHeader("Connection", "close");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 0\r\nconnection: close\r\n\r\n");
  EXPECT_FALSE(w.writer.isKeepAlive());
}

TEST(ResponseWriter, FindsCloseInAnyConnectionFieldAndAnywhereInIt) {
  for (const char* value : {"close", "x, Close", "close,x", "x ,\tclose ,y"}) {
    Writing w;
    w.response.setHeader("Connection", "x");
    w.response.headerList().add("connection", value);
    w.write();
    EXPECT_FALSE(w.writer.isKeepAlive()) << value;
  }
  Writing w;
  w.response.setHeader("Connection", "closed, not close");
  w.write();
  EXPECT_TRUE(w.writer.isKeepAlive());
}

// SEC-36
TEST(ResponseWriter, SaysThat205IsEmpty) {
  Writing w;
  w.response.setStatus(HttpStatus::RESET_CONTENT);
  w.response.setBody("hello");
  EXPECT_EQ(w.write(), "HTTP/1.1 205 Reset Content\r\n" + kDate + "content-length: 0\r\n\r\n");
  ASSERT_TRUE(w.writer.begin(w.request, w.response));
  EXPECT_FALSE(w.writer.writePiece("hello"));
  EXPECT_TRUE(w.writer.end());
  EXPECT_EQ(w.sink.take(), "HTTP/1.1 205 Reset Content\r\n" + kDate + "content-length: 0\r\n\r\n");
}

// SEC-36: the client would take the next answer for this one.
TEST(ResponseWriter, RefusesAStatusThatIsNotFinal) {
  for (const auto status : {HttpStatus::CONTINUE, HttpStatus::PROCESSING, HttpStatus::EARLY_HINTS}) {
    Writing w;
    w.response.setStatus(status);
    EXPECT_FALSE(w.writer.write(w.request, w.response));
    EXPECT_EQ(errno, EPROTO);
    EXPECT_FALSE(w.writer.begin(w.request, w.response));
    EXPECT_EQ(errno, EPROTO);
    EXPECT_EQ(w.sink.calls(), 0u);
    EXPECT_FALSE(w.writer.isStarted());
    w.response.setStatus(HttpStatus::OK);
    EXPECT_TRUE(w.writer.write(w.request, w.response));
  }
}

TEST(ResponseWriter, LeavesTheConnectionHeaderOf101ToTheHandler) {
  Writing w;
  w.response.setStatus(HttpStatus::SWITCHING_PROTOCOLS);
  w.response.setHeader("Connection", "Upgrade");
  EXPECT_EQ(w.write(), "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" + kDate + "\r\n");
  EXPECT_FALSE(w.writer.isKeepAlive()) << "no request follows";
}

TEST(ResponseWriter, TakesAReasonAndADateOfTheHandler) {
  Writing w;
  w.response.setReason("Fine");
  w.response.setHeader("Date", "today");
  EXPECT_EQ(w.write(), "HTTP/1.1 200 Fine\r\nDate: today\r\ncontent-length: 0\r\n\r\n");
}

// SEC-60
TEST(ResponseWriter, AnswersAnErrorWithoutATrace) {
  Writing w;
  EXPECT_TRUE(w.writer.writeError(HttpStatus::BAD_REQUEST));
  EXPECT_EQ(w.sink.take(), "HTTP/1.1 400 Bad Request\r\n" + kDate + "content-length: 0\r\nconnection: close\r\n\r\n");
  EXPECT_FALSE(w.writer.isKeepAlive());
}

TEST(ResponseWriter, StreamsChunksToANewPeer) {
  Writing w;
  ASSERT_TRUE(w.writer.begin(w.request, w.response));
  EXPECT_FALSE(w.writer.isKeepAlive()) << "while the body is open";
  EXPECT_TRUE(w.writer.writePiece("hello"));
  EXPECT_TRUE(w.writer.writePiece(""));
  EXPECT_TRUE(w.writer.writePiece(std::string(5000, 'x')));
  EXPECT_TRUE(w.writer.end());
  EXPECT_EQ(w.sink.take(), "HTTP/1.1 200 OK\r\n" + kDate + "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1388\r\n" +
                               std::string(5000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(w.sink.calls(), 4u);
  EXPECT_TRUE(w.writer.isKeepAlive());
}

TEST(ResponseWriter, StreamsUntilTheEndToAnOldPeer) {
  Writing w;
  w.request = HttpRequest(0x10, false);
  ASSERT_TRUE(w.writer.begin(w.request, w.response));
  EXPECT_TRUE(w.writer.writePiece("hello"));
  EXPECT_TRUE(w.writer.end());
  EXPECT_EQ(w.sink.take(), "HTTP/1.1 200 OK\r\n" + kDate + "connection: close\r\n\r\nhello");
  EXPECT_FALSE(w.writer.isKeepAlive());
}

TEST(ResponseWriter, StreamsAKnownLength) {
  Writing w;
  ASSERT_TRUE(w.writer.begin(w.request, w.response, 10));
  EXPECT_TRUE(w.writer.writePiece("hello"));
  EXPECT_TRUE(w.writer.writePiece("world"));
  EXPECT_TRUE(w.writer.end());
  EXPECT_EQ(w.sink.take(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 10\r\n\r\nhelloworld");
  EXPECT_TRUE(w.writer.isKeepAlive());
}

// SEC-36
TEST(ResponseWriter, CutsTheConnectionWhenTheLengthIsNotWhatWasPromised) {
  Writing less;
  ASSERT_TRUE(less.writer.begin(less.request, less.response, 10));
  EXPECT_TRUE(less.writer.writePiece("hello"));
  EXPECT_FALSE(less.writer.end());
  EXPECT_EQ(errno, EPROTO);
  EXPECT_FALSE(less.writer.isKeepAlive());

  Writing more;
  ASSERT_TRUE(more.writer.begin(more.request, more.response, 4));
  EXPECT_FALSE(more.writer.writePiece("hello"));
  EXPECT_EQ(errno, EMSGSIZE);
  EXPECT_FALSE(more.writer.isKeepAlive());
  EXPECT_TRUE(more.sink.bytes().ends_with("\r\n\r\n")) << "nothing of the piece";
  const size_t calls = more.sink.calls();
  EXPECT_FALSE(more.writer.end());
  EXPECT_FALSE(more.writer.write(more.request, more.response));
  EXPECT_EQ(more.sink.calls(), calls) << "nothing goes out behind a failure";
}

// SEC-36
TEST(ResponseWriter, StreamsNoBodyToHeadNorWith204) {
  Writing head;
  head.request.setMethod(HttpMethod::HEAD);
  ASSERT_TRUE(head.writer.begin(head.request, head.response, 10));
  for (const char* piece : {"helloworld", ""}) {
    EXPECT_FALSE(head.writer.writePiece(piece));
    EXPECT_EQ(errno, EALREADY);
  }
  EXPECT_TRUE(head.writer.end());
  EXPECT_EQ(head.sink.take(), "HTTP/1.1 200 OK\r\n" + kDate + "content-length: 10\r\n\r\n");
  EXPECT_TRUE(head.writer.isKeepAlive());

  Writing empty;
  empty.response.setStatus(HttpStatus::NO_CONTENT);
  ASSERT_TRUE(empty.writer.begin(empty.request, empty.response));
  EXPECT_FALSE(empty.writer.writePiece("hello"));
  EXPECT_EQ(errno, EALREADY);
  EXPECT_TRUE(empty.writer.end());
  EXPECT_EQ(empty.sink.take(), "HTTP/1.1 204 No Content\r\n" + kDate + "\r\n");
}

TEST(ResponseWriter, WritesNothingOutOfTurn) {
  Writing w;
  EXPECT_FALSE(w.writer.writePiece("x"));
  EXPECT_EQ(errno, EPROTO);
  EXPECT_FALSE(w.writer.end());
  EXPECT_EQ(errno, EPROTO);
  EXPECT_EQ(w.sink.calls(), 0u);
  EXPECT_TRUE(w.writer.write(w.request, w.response)) << "nothing has been lost";

  Writing open;
  ASSERT_TRUE(open.writer.begin(open.request, open.response));
  EXPECT_FALSE(open.writer.write(open.request, open.response));
  EXPECT_FALSE(open.writer.isKeepAlive());
}

TEST(ResponseWriter, EndsWithTheSink) {
  Writing w;
  w.sink.failFrom(0);
  EXPECT_FALSE(w.writer.write(w.request, w.response));
  EXPECT_EQ(errno, EPIPE);
  EXPECT_FALSE(w.writer.isKeepAlive());
}

TEST(ResponseWriter, KnowsWhetherAnAnswerHasBegun) {
  Writing w;
  EXPECT_FALSE(w.writer.isStarted());
  w.write();
  EXPECT_TRUE(w.writer.isStarted());
  w.writer.startRequest();
  EXPECT_FALSE(w.writer.isStarted());
}

TEST(HttpDate, IsTheOneOfTheRfc) {
  EXPECT_EQ(httpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(httpDate(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(httpDate(951782400), "Tue, 29 Feb 2000 00:00:00 GMT");
  EXPECT_EQ(recentHttpDate(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(recentHttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(recentHttpDate(784111778), "Sun, 06 Nov 1994 08:49:38 GMT");
  EXPECT_EQ(recentHttpDate(784111778), "Sun, 06 Nov 1994 08:49:38 GMT");
}

}  // namespace
}  // namespace sylar::http
