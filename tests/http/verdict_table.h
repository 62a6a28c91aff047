// The verdict on each request: an input, and exactly what a reader says about it. The ids are promises; each has at least five
// rows. The reader has the default limits, but a body of at most 64 bytes.
#pragma once

#include <string>
#include <vector>

#include "sylar/http/verdict.h"

namespace sylar::http {

inline constexpr uint64_t kTableMaxBody = 64;

struct VerdictRow {
  const char* id;
  const char* name;
  std::string input;
  Verdict verdict;
  std::string body = {};  // of the accepted request
  std::string left = {};  // what the next request begins with
};

namespace table {

using namespace std::string_literals;

inline const Verdict kKeep = Verdict::accepted(true);
inline const Verdict kClose = Verdict::accepted(false);
inline const Verdict kGone = Verdict::gone("");
inline Verdict no(int status) { return Verdict::refused(static_cast<HttpStatus>(status), ""); }

inline std::string times(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}
inline std::string a(size_t count) { return std::string(count, 'a'); }
/// A GET with these header lines besides Host.
inline std::string get(const std::string& lines) { return "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n"; }
/// A head of this request line.
inline std::string line(const std::string& text) { return text + "\r\nHost: a\r\n\r\n"; }
inline std::string target(const std::string& text) { return line("GET " + text + " HTTP/1.1"); }
inline std::string host(const std::string& lines) { return "GET / HTTP/1.1\r\n" + lines + "\r\n"; }
inline std::string post(const std::string& lines, const std::string& rest) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n" + rest;
}
inline std::string length(const std::string& value, const std::string& rest) {
  return post("Content-Length: " + value + "\r\n", rest);
}
inline std::string coding(const std::string& value) { return post("Transfer-Encoding: " + value + "\r\n", "0\r\n\r\n"); }
inline std::string chunks(const std::string& rest) { return post("Transfer-Encoding: chunked\r\n", rest); }
/// A request line of `size` bytes.
inline std::string lineOf(size_t size) { return line("GET /" + a(size - 14) + " HTTP/1.1"); }
/// A header line of `size` bytes.
inline std::string headerOf(size_t size) { return "X: " + a(size - 3) + "\r\n"; }

inline const std::string kNext = "GET /next HTTP/1.1\r\n";

inline std::vector<VerdictRow> ordinary() {
  return {
      {"RFC-9112", "least", get(""), kKeep},
      {"RFC-9112", "next stays", get("") + kNext, kKeep, "", kNext},
      {"RFC-9112", "1.0 closes", line("GET / HTTP/1.0"), kClose},
      {"RFC-9112", "1.0 keeps", "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", kKeep},
      {"RFC-9112", "1.0 without host", "GET / HTTP/1.0\r\n\r\n", kClose},
      {"RFC-9112", "1.1 closes", get("Connection: close\r\n"), kClose},
      {"RFC-9112", "close in a list", get("Connection: te, Close\r\n"), kClose},
      {"RFC-9112", "close in a second line", get("Connection: keep-alive\r\nConnection: close\r\n"), kClose},
      {"RFC-9112", "close wins over keep-alive", get("Connection: close, keep-alive\r\n"), kClose},
      {"RFC-9112", "a list with gaps", get("Connection: , close ,\t,\r\n"), kClose},
      {"RFC-9112", "an empty list", get("Connection:\r\nProxy-Connection: \r\n"), kKeep},
      {"RFC-9112", "a list without commas", get("Connection: close keep-alive\r\n"), no(400)},
      {"RFC-9112", "a list with parameters", get("Connection: close;q=1\r\n"), no(400)},
      {"RFC-9112", "a list in quotes", get("Connection: \"close\"\r\n"), no(400)},
      {"RFC-9112", "a list for proxies is read", get("Proxy-Connection: close keep-alive\r\n"), no(400)},
      {"RFC-9112", "a list for proxies is not followed", get("Proxy-Connection: close\r\n"), kKeep},
      {"RFC-9112", "names that are nearly known", get("Hosts: b\r\nExpected: x\r\nConnections: close\r\nContent_Length: 5\r\n"),
       kKeep},
      {"RFC-9112", "body", length("5", "hello"), kKeep, "hello"},
      {"RFC-9112", "body of nothing", length("0", ""), kKeep},
      {"RFC-9112", "post without length", post("", ""), kKeep},
      {"RFC-9112", "1.0 with body", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nok", kClose, "ok"},
      {"RFC-9112", "method of lower case", line("get / HTTP/1.1"), no(501)},
      {"RFC-9112", "method unknown", line("BREW / HTTP/1.1"), no(501)},
      {"RFC-9112", "method with a dash", line("M-SEARCH / HTTP/1.1"), kKeep},
      {"RFC-9112", "connect", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", no(501)},
      {"RFC-9112", "options of all", line("OPTIONS * HTTP/1.1"), kKeep},
      {"RFC-9112", "nothing", "", kGone},
      {"RFC-9112", "end in the method", "GE", kGone},
      {"RFC-9112", "end in the line", "GET / HTT", kGone},
      {"RFC-9112", "end in a name", "GET / HTTP/1.1\r\nHos", kGone},
      {"RFC-9112", "end before the last LF", "GET / HTTP/1.1\r\nHost: a\r\n\r", kGone},
      {"RFC-9112", "end in the body", length("5", "hell"), kGone},
      {"RFC-9112", "end in a chunk", chunks("5\r\nhell"), kGone},
      {"RFC-9112", "end in the trailers", chunks("0\r\nX: y\r\n"), kGone},
  };
}

inline std::vector<VerdictRow> limits() {
  const std::string lines = times(3, headerOf(8192));  // with "Host: a" 24591 of 32768 bytes
  const std::string many = times(98, "X: y\r\n");      // with "Host: a" 99 of 100 lines
  return {
      {"SEC-01", "line of n-1", lineOf(8191), kKeep},
      {"SEC-01", "line of n", lineOf(8192), kKeep},
      {"SEC-01", "line of n+1", lineOf(8193), no(414)},
      {"SEC-01", "line of n+2", lineOf(8194), no(414)},
      {"SEC-01", "target without end", "GET /" + a(9000), no(414)},
      {"SEC-01", "method without end", std::string(9000, 'G'), no(414)},
      {"SEC-01", "target ends at n", line("GET /" + a(8187) + " HTTP/1.1"), no(414)},
      {"SEC-01", "line of n after an empty one", "\r\n" + lineOf(8192), kKeep},
      {"SEC-01", "line of n+1 after an empty one", "\r\n" + lineOf(8193), no(414)},
      {"SEC-02", "header of n-1", get(headerOf(8191)), kKeep},
      {"SEC-02", "header of n", get(headerOf(8192)), kKeep},
      {"SEC-02", "header of n+1", get(headerOf(8193)), no(431)},
      {"SEC-02", "header without end", "GET / HTTP/1.1\r\nX: " + a(9000), no(431)},
      {"SEC-02", "name of n+1", get(a(8193) + ": x\r\n"), no(431)},
      {"SEC-02", "name of n", get(a(8192) + ": x\r\n"), no(431)},
      {"SEC-02", "name without value of n+1", get(a(8192) + ":\r\n"), no(431)},
      {"SEC-02", "name without value of n", get(a(8191) + ":\r\n"), kKeep},
      {"SEC-02", "blanks of n+1", get("X:" + std::string(8191, ' ') + "\r\n"), no(431)},
      {"SEC-02", "all of n-1", get(lines + headerOf(8174)), kKeep},
      {"SEC-02", "all of n", get(lines + headerOf(8175)), kKeep},
      {"SEC-02", "all of n+1", get(lines + headerOf(8176)), no(431)},
      {"SEC-02", "all of n by a short line", get(lines + headerOf(8168) + "X:yz0\r\n"), kKeep},
      {"SEC-02", "all of n+1 by a short line", get(lines + headerOf(8168) + "X:yz01\r\n"), no(431)},
      {"SEC-02", "99 lines", get(many), kKeep},
      {"SEC-02", "100 lines", get(many + "X: y\r\n"), kKeep},
      {"SEC-02", "101 lines", get(many + "X: y\r\nX: y\r\n"), no(431)},
      {"SEC-02", "101st line begun", "GET / HTTP/1.1\r\n" + times(100, "X: y\r\n") + "Z", no(431)},
      {"SEC-03", "body of n-1", length("63", a(63)), kKeep, a(63)},
      {"SEC-03", "body of n", length("64", a(64)), kKeep, a(64)},
      {"SEC-03", "body of n+1", length("65", a(65)), no(413)},
      {"SEC-03", "body of n+1 promised only", length("65", ""), no(413)},
      {"SEC-03", "huge body promised", length("9223372036854775807", ""), no(413)},
      {"SEC-03", "chunk of n", chunks("40\r\n" + a(64) + "\r\n0\r\n\r\n"), kKeep, a(64)},
      {"SEC-03", "chunk of n+1", chunks("41\r\n"), no(413)},
      {"SEC-03", "chunks of n", chunks("20\r\n" + a(32) + "\r\n20\r\n" + a(32) + "\r\n0\r\n\r\n"), kKeep, a(64)},
      {"SEC-03", "chunks of n+1", chunks("20\r\n" + a(32) + "\r\n21\r\n"), no(413)},
      {"SEC-03", "chunk of one beyond n", chunks("40\r\n" + a(64) + "\r\n1\r\n"), no(413)},
      {"SEC-03", "huge chunk promised", chunks("7fffffffffffffff\r\n"), no(413)},
      {"SEC-04", "chunk line of n-1", chunks("0;" + a(253) + "\r\n\r\n"), kKeep},
      {"SEC-04", "chunk line of n", chunks("0;" + a(254) + "\r\n\r\n"), kKeep},
      {"SEC-04", "chunk line of n+1", chunks("0;" + a(255) + "\r\n\r\n"), no(400)},
      {"SEC-04", "extension without end", chunks("0;" + a(5000)), no(400)},
      {"SEC-04", "extensions of n",
       chunks(times(16, "1;" + a(199) + "\r\nx\r\n") + times(16, "1;" + a(55) + "\r\nx\r\n") + "0\r\n\r\n"), kKeep,
       std::string(32, 'x')},
      {"SEC-04", "extensions of n+1",
       chunks(times(16, "1;" + a(199) + "\r\nx\r\n") + times(16, "1;" + a(55) + "\r\nx\r\n") + "0;\r\n\r\n"), no(400)},
      {"SEC-04", "trailers of n", chunks("0\r\n" + headerOf(8190) + "\r\n"), kKeep},
      {"SEC-04", "trailers of n+1", chunks("0\r\n" + headerOf(8191) + "\r\n"), no(400)},
      {"SEC-04", "trailers of n in two lines", chunks("0\r\n" + headerOf(4094) + headerOf(4094) + "\r\n"), kKeep},
      {"SEC-04", "trailers of n+1 in two lines", chunks("0\r\n" + headerOf(4094) + headerOf(4095) + "\r\n"), no(400)},
      {"SEC-04", "trailer without end", chunks("0\r\nX: " + a(9000)), no(400)},
      {"SEC-04", "101 trailers", chunks("0\r\n" + times(101, "X: y\r\n") + "\r\n"), no(400)},
  };
}

inline std::vector<VerdictRow> lengths() {
  return {
      {"SEC-20", "length, then chunked", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-20", "chunked, then length", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-20", "length 0 and chunked", post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-20", "length and identity", post("Content-Length: 5\r\nTransfer-Encoding: identity\r\n", "hello"), no(400)},
      {"SEC-20", "length and empty coding", post("Content-Length: 5\r\nTransfer-Encoding:\r\n", "hello"), no(400)},
      {"SEC-20", "malformed length and chunked", post("Content-Length: x\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
       no(400)},
      {"SEC-20", "other letters", post("cONTENT-lENGTH: 5\r\ntRANSFER-eNCODING: chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-20", "get with both", get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", no(400)},
      {"SEC-20", "apart", post("Content-Length: 5\r\nX: y\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-20", "an underscore is another name", post("Content_Length: 9\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
       kKeep},
      {"SEC-21", "two equal", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), no(400)},
      {"SEC-21", "two different", post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), no(400)},
      {"SEC-21", "two of nothing", post("Content-Length: 0\r\nContent-Length: 0\r\n", ""), no(400)},
      {"SEC-21", "list of equal", length("5, 5", "hello"), no(400)},
      {"SEC-21", "list of different", length("5,6", "hello"), no(400)},
      {"SEC-21", "list of one", length("5,", "hello"), no(400)},
      {"SEC-21", "list that begins empty", length(",5", "hello"), no(400)},
      {"SEC-21", "three", post(times(3, "Content-Length: 1\r\n"), "x"), no(400)},
      {"SEC-21", "other letters", post("Content-Length: 5\r\ncontent-length: 5\r\n", "hello"), no(400)},
      {"SEC-22", "empty", length("", ""), no(400)},
      {"SEC-22", "blank", length("  ", ""), no(400)},
      {"SEC-22", "plus", length("+5", "hello"), no(400)},
      {"SEC-22", "minus", length("-5", "hello"), no(400)},
      {"SEC-22", "minus zero", length("-0", ""), no(400)},
      {"SEC-22", "hex", length("0x5", "hello"), no(400)},
      {"SEC-22", "hex digit", length("5a", "hello"), no(400)},
      {"SEC-22", "underscore", length("1_0", "hellohello"), no(400)},
      {"SEC-22", "inner space", length("1 0", "hellohello"), no(400)},
      {"SEC-22", "point", length("5.0", "hello"), no(400)},
      {"SEC-22", "exponent", length("5e0", "hello"), no(400)},
      {"SEC-22", "quoted", length("\"5\"", "hello"), no(400)},
      {"SEC-22", "a semicolon", length("5;", "hello"), no(400)},
      {"SEC-22", "a letter", length("five", "hello"), no(400)},
      {"SEC-22", "byte above ASCII", length("\xb2", "he"), no(400)},
      {"SEC-22", "2^63", length("9223372036854775808", ""), no(400)},
      {"SEC-22", "2^63-1", length("9223372036854775807", ""), no(413)},
      {"SEC-22", "2^64", length("18446744073709551616", ""), no(400)},
      {"SEC-22", "2^64 + 5", length("18446744073709551621", "hello"), no(400)},
      {"SEC-22", "40 digits", length(std::string(40, '1'), ""), no(400)},
      {"SEC-22", "40 zeros", length(std::string(40, '0'), ""), no(400)},
      {"SEC-22", "leading zeros", length("005", "hello"), kKeep, "hello"},
      {"SEC-22", "blanks around", length(" \t5 \t", "hello"), kKeep, "hello"},
      {"SEC-22", "vertical tab", length("5\v", "hello"), no(400)},
      {"SEC-22", "form feed", length("\f5", "hello"), no(400)},
  };
}

inline std::vector<VerdictRow> codings() {
  return {
      {"SEC-23", "chunked", coding("chunked"), kKeep},
      {"SEC-23", "letters of any case", coding("ChUnKeD"), kKeep},
      {"SEC-23", "blanks around", coding(" \tchunked\t "), kKeep},
      {"SEC-23", "not last", coding("chunked, gzip"), no(400)},
      {"SEC-23", "not last, identity", coding("chunked, identity"), no(400)},
      {"SEC-23", "twice", coding("chunked, chunked"), no(400)},
      {"SEC-23", "twice in two lines", post(times(2, "Transfer-Encoding: chunked\r\n"), "0\r\n\r\n"), no(400)},
      {"SEC-23", "two lines", post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-23", "second line empty", post("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-23", "misspelt", coding("chunke"), no(501)},
      {"SEC-23", "misspelt longer", coding("chunkedd"), no(501)},
      {"SEC-23", "misspelt in front", coding("xchunked"), no(501)},
      {"SEC-23", "quoted", coding("\"chunked\""), no(400)},
      {"SEC-23", "single quotes are a token", coding("'chunked'"), no(501)},
      {"SEC-23", "two words", coding("x chunked"), no(400)},
      {"SEC-23", "gzip, chunked", coding("gzip, chunked"), no(501)},
      {"SEC-23", "identity, chunked", coding("identity, chunked"), no(501)},
      {"SEC-23", "gzip", coding("gzip"), no(501)},
      {"SEC-23", "identity", coding("identity"), no(501)},
      {"SEC-23", "empty", coding(""), no(400)},
      {"SEC-23", "empty element last", coding("chunked,"), no(400)},
      {"SEC-23", "empty element first", coding(",chunked"), no(400)},
      {"SEC-23", "with a parameter", coding("chunked;q=1"), no(400)},
      {"SEC-23", "vertical tab before", coding("\vchunked"), no(400)},
      {"SEC-23", "vertical tab behind", coding("chunked\v"), no(400)},
      {"SEC-23", "NUL behind", coding("chunked\0"s), no(400)},
      {"SEC-23", "no-break space",
       coding("\xa0"
              "chunked"),
       no(400)},
      {"SEC-23", "Kelvin sign",
       coding("chun\xe2\x84\xaa"
              "ed"),
       no(400)},
      {"SEC-23", "folded", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-23", "name with a blank behind", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-23", "name with a byte above ASCII", post("Transfer\xad-Encoding: chunked\r\n", "0\r\n\r\n"), no(400)},
      {"SEC-24", "1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", no(400)},
      {"SEC-24", "1.0 kept", "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", no(400)},
      {"SEC-24", "1.0 identity", "POST / HTTP/1.0\r\nTransfer-Encoding: identity\r\n\r\n", no(400)},
      {"SEC-24", "1.0 empty", "POST / HTTP/1.0\r\nTransfer-Encoding:\r\n\r\n", no(400)},
      {"SEC-24", "1.0 get", "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", no(400)},
      {"SEC-24", "1.0 and length", "POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       no(400)},
  };
}

inline std::vector<VerdictRow> lines() {
  return {
      {"SEC-25", "space before colon", get("X : y\r\n"), no(400)},
      {"SEC-25", "tab before colon", get("X\t: y\r\n"), no(400)},
      {"SEC-25", "space before colon of host", host("Host : a\r\n"), no(400)},
      {"SEC-25", "space before colon of length", post("Content-Length : 5\r\n", "hello"), no(400)},
      {"SEC-25", "empty name", get(": y\r\n"), no(400)},
      {"SEC-25", "no colon", get("X\r\n"), no(400)},
      {"SEC-25", "no colon, two words", get("X y\r\n"), no(400)},
      {"SEC-25", "folded by a space", get("X: y\r\n z\r\n"), no(400)},
      {"SEC-25", "folded by a tab", get("X: y\r\n\tz\r\n"), no(400)},
      {"SEC-25", "folded to a blank line", get("X: y\r\n \r\n"), no(400)},
      {"SEC-25", "space before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", no(400)},
      {"SEC-25", "tab before the first header", "GET / HTTP/1.1\r\n\tX: y\r\nHost: a\r\n\r\n", no(400)},
      {"SEC-25", "name with parentheses", get("X(y): z\r\n"), no(400)},
      {"SEC-25", "name with a slash", get("X/y: z\r\n"), no(400)},
      {"SEC-25", "name with quotes", get("\"X\": z\r\n"), no(400)},
      {"SEC-25", "name with @", get("X@y: z\r\n"), no(400)},
      {"SEC-25", "name with brackets", get("X[y]: z\r\n"), no(400)},
      {"SEC-25", "name with a brace", get("X{: z\r\n"), no(400)},
      {"SEC-25", "name with =", get("X=y: z\r\n"), no(400)},
      {"SEC-25", "name with DEL", get("X\x7f: z\r\n"), no(400)},
      {"SEC-25", "name above ASCII", get("\xc3\xa9: z\r\n"), no(400)},
      {"SEC-25", "name of all token characters", get("!#$%&'*+-.^_`|~09azAZ: y\r\n"), kKeep},
      {"SEC-25", "value empty", get("X:\r\n"), kKeep},
      {"SEC-25", "value without a blank", get("X:y\r\n"), kKeep},
      {"SEC-25", "value of blanks", get("X: \t \r\n"), kKeep},
      {"SEC-25", "value with colons", get("X: :y:z:\r\n"), kKeep},
      {"SEC-25", "value above ASCII", get("X: \xc3\xa9\xff\x80\r\n"), kKeep},
      {"SEC-25", "space before the request line", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", no(400)},
      {"SEC-25", "two spaces behind the method", line("GET  / HTTP/1.1"), no(400)},
      {"SEC-25", "two spaces before the version", line("GET /  HTTP/1.1"), no(400)},
      {"SEC-25", "space behind the version", line("GET / HTTP/1.1 "), no(400)},
      {"SEC-25", "tabs in the request line", line("GET\t/\tHTTP/1.1"), no(400)},
      {"SEC-25", "method with a slash", line("GE/T / HTTP/1.1"), no(400)},
      {"SEC-25", "method with a brace", line("GET{} / HTTP/1.1"), no(400)},
      {"SEC-26", "NUL in the method", line("G\0ET / HTTP/1.1"s), no(400)},
      {"SEC-26", "NUL in the target", line("GET /\0 HTTP/1.1"s), no(400)},
      {"SEC-26", "NUL in a name", get("X\0: y\r\n"s), no(400)},
      {"SEC-26", "NUL in a value", get("X: y\0z\r\n"s), no(400)},
      {"SEC-26", "NUL before all", "\0"s + get(""), no(400)},
      {"SEC-26", "CR in the request line", line("GET /\r HTTP/1.1"), no(400)},
      {"SEC-26", "CR in a name", get("X\rY: z\r\n"), no(400)},
      {"SEC-26", "CR in a value", get("X: y\rz\r\n"), no(400)},
      {"SEC-26", "CR twice", get("X: y\r\r\n"), no(400)},
      {"SEC-26", "CR hides a header", get("X: y\rContent-Length: 5\r\n"), no(400)},
      {"SEC-26", "LF ends the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", no(400)},
      {"SEC-26", "LF ends a header", "GET / HTTP/1.1\r\nHost: a\n\r\n", no(400)},
      {"SEC-26", "LF ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\n", no(400)},
      {"SEC-26", "LF only", "GET / HTTP/1.1\nHost: a\n\n", no(400)},
      {"SEC-26", "LF in a value", get("X: y\nTransfer-Encoding: chunked\r\n"), no(400)},
      {"SEC-26", "LF before all", "\n" + get(""), no(400)},
      {"SEC-26", "CR ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\rX", no(400)},
      {"SEC-26", "LF CR", "GET / HTTP/1.1\n\rHost: a\n\r\n\r", no(400)},
      {"SEC-26", "bell in a value", get("X: \a\r\n"), no(400)},
      {"SEC-26", "escape in a value", get("X: \x1b[2J\r\n"), no(400)},
      {"SEC-26", "DEL in a value", get("X: \x7f\r\n"), no(400)},
      {"SEC-32", "one empty line", "\r\n" + get(""), kKeep},
      {"SEC-32", "two empty lines", "\r\n\r\n" + get(""), no(400)},
      {"SEC-32", "three empty lines", "\r\n\r\n\r\n" + get(""), no(400)},
      {"SEC-32", "one empty line and a space", "\r\n " + get(""), no(400)},
      {"SEC-32", "a blank line", " \r\n" + get(""), no(400)},
      {"SEC-32", "CR only", "\r" + get(""), no(400)},
      {"SEC-32", "two CR", "\r\r\n" + get(""), no(400)},
      {"SEC-32", "empty line only", "\r\n", kGone},
      {"SEC-32", "empty line behind a body stays", length("2", "ok\r\n") + kNext, kKeep, "ok", "\r\n" + kNext},
  };
}

inline std::vector<VerdictRow> chunkLines() {
  return {
      {"SEC-27", "one chunk", chunks("5\r\nhello\r\n0\r\n\r\n"), kKeep, "hello"},
      {"SEC-27", "two chunks", chunks("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), kKeep, "hello world"},
      {"SEC-27", "hex of any case", chunks("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), kKeep, "01234567890123456789"},
      {"SEC-27", "16 digits", chunks("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n"), kKeep, "hello"},
      {"SEC-27", "17 digits", chunks("00000000000000005\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "17 zeros", chunks("00000000000000000\r\n\r\n"), no(400)},
      {"SEC-27", "2^63", chunks("8000000000000000\r\n"), no(400)},
      {"SEC-27", "2^64-1", chunks("ffffffffffffffff\r\n"), no(400)},
      {"SEC-27", "2^64", chunks("10000000000000000\r\n"), no(400)},
      {"SEC-27", "0x", chunks("0x5\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "plus", chunks("+5\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "minus", chunks("-5\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "space before", chunks(" 5\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "space behind", chunks("5 \r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "tab behind", chunks("5\t\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "space before an extension", chunks("5 ;x\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "underscore", chunks("1_0\r\n"), no(400)},
      {"SEC-27", "empty size", chunks("\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "extension only", chunks(";x\r\n\r\n"), no(400)},
      {"SEC-27", "no hex digit", chunks("g\r\n"), no(400)},
      {"SEC-27", "comma", chunks("5,\r\nhello\r\n"), no(400)},
      {"SEC-27", "quoted", chunks("\"5\"\r\nhello\r\n"), no(400)},
      {"SEC-27", "byte above ASCII", chunks("\xb2\r\n"), no(400)},
      {"SEC-27", "NUL", chunks("5\0\r\nhello\r\n"s), no(400)},
      {"SEC-27", "extension", chunks("5;name=value\r\nhello\r\n0;last\r\n\r\n"), kKeep, "hello"},
      {"SEC-27", "extension quoted", chunks("5;name=\"a b;c\"\r\nhello\r\n0\r\n\r\n"), kKeep, "hello"},
      {"SEC-27", "extension empty", chunks("5;\r\nhello\r\n0\r\n\r\n"), kKeep, "hello"},
      {"SEC-27", "extension with NUL", chunks("5;\0\r\nhello\r\n0\r\n\r\n"s), no(400)},
      {"SEC-27", "extension with CR", chunks("5;a\rb\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "extension with LF", chunks("5;a\nb\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "LF ends an extension", chunks("5;a\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "LF ends the size", chunks("5\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "CR ends the size", chunks("5\rhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "LF behind data", chunks("5\r\nhello\n0\r\n\r\n"), no(400)},
      {"SEC-27", "CR behind data", chunks("5\r\nhello\r0\r\n\r\n"), no(400)},
      {"SEC-27", "nothing behind data", chunks("5\r\nhello0\r\n\r\n"), no(400)},
      {"SEC-27", "two LF behind data", chunks("5\r\nhello\n\n0\r\n\r\n"), no(400)},
      {"SEC-27", "a byte and LF behind data", chunks("5\r\nhellox\n0\r\n\r\n"), no(400)},
      {"SEC-27", "data too long", chunks("4\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "data too short", chunks("6\r\nhello\r\n0\r\n\r\n"), no(400)},
      {"SEC-27", "LF behind the last size", chunks("0\n\r\n"), no(400)},
      {"SEC-27", "LF ends the body", chunks("0\r\n\n"), no(400)},
      {"SEC-27", "CR only ends the body", chunks("0\r\n\rX"), no(400)},
      {"SEC-28", "trailer", chunks("0\r\nX-Sum: 5\r\n\r\n"), kKeep},
      {"SEC-28", "two trailers", chunks("1\r\nx\r\n0\r\nX: 5\r\nY: 6\r\n\r\n"), kKeep, "x"},
      {"SEC-28", "content-length", chunks("0\r\nContent-Length: 5\r\n\r\n"), no(400)},
      {"SEC-28", "transfer-encoding", chunks("0\r\nTransfer-Encoding: chunked\r\n\r\n"), no(400)},
      {"SEC-28", "other letters", chunks("0\r\nX: y\r\ntRANSFER-encoding: chunked\r\n\r\n"), no(400)},
      {"SEC-28", "host", chunks("0\r\nHost: b\r\n\r\n"), no(400)},
      {"SEC-28", "connection", chunks("0\r\nConnection: close\r\n\r\n"), no(400)},
      {"SEC-28", "authorization", chunks("0\r\nAuthorization: Basic eA==\r\n\r\n"), no(400)},
      {"SEC-28", "malformed", chunks("0\r\nX y\r\n\r\n"), no(400)},
      {"SEC-28", "space before colon", chunks("0\r\nX : y\r\n\r\n"), no(400)},
      {"SEC-28", "folded", chunks("0\r\nX: y\r\n z\r\n\r\n"), no(400)},
      {"SEC-28", "NUL", chunks("0\r\nX: \0\r\n\r\n"s), no(400)},
      {"SEC-28", "LF", chunks("0\r\nX: y\n\r\n"), no(400)},
      {"SEC-28", "request instead", chunks("0\r\n" + get("")), no(400)},
      {"SEC-28", "next stays", chunks("0\r\nX: y\r\n\r\n" + kNext), kKeep, "", kNext},
  };
}

inline std::vector<VerdictRow> targets() {
  return {
      {"SEC-29", "2.0", line("GET / HTTP/2.0"), no(505)},
      {"SEC-29", "1.2", line("GET / HTTP/1.2"), no(505)},
      {"SEC-29", "0.9", line("GET / HTTP/0.9"), no(505)},
      {"SEC-29", "9.9", line("GET / HTTP/9.9"), no(505)},
      {"SEC-29", "none", "GET /\r\n\r\n", no(400)},
      {"SEC-29", "none but a space", "GET / \r\n\r\n", no(400)},
      {"SEC-29", "lower case", line("GET / http/1.1"), no(400)},
      {"SEC-29", "mixed case", line("GET / Http/1.1"), no(400)},
      {"SEC-29", "one digit", line("GET / HTTP/1"), no(400)},
      {"SEC-29", "two digits", line("GET / HTTP/1.10"), no(400)},
      {"SEC-29", "leading zero", line("GET / HTTP/01.1"), no(400)},
      {"SEC-29", "three numbers", line("GET / HTTP/1.1.1"), no(400)},
      {"SEC-29", "comma", line("GET / HTTP/1,1"), no(400)},
      {"SEC-29", "another protocol", line("GET / ICY/1.1"), no(400)},
      {"SEC-29", "HTTPS", line("GET / HTTPS/1.1"), no(400)},
      {"SEC-29", "space in it", line("GET / HTTP/ 1.1"), no(400)},
      {"SEC-29", "NUL in it", line("GET / HTTP/1.1\0"s), no(400)},
      {"SEC-29", "above ASCII", line("GET / HTTP/1.\xb9"), no(400)},
      {"SEC-29", "long", line("GET / " + a(300)), no(400)},
      {"SEC-30", "none", host(""), no(400)},
      {"SEC-30", "two equal", host("Host: a\r\nHost: a\r\n"), no(400)},
      {"SEC-30", "two different", host("Host: a\r\nhost: b\r\n"), no(400)},
      {"SEC-30", "two in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", no(400)},
      {"SEC-30", "empty", host("Host:\r\n"), no(400)},
      {"SEC-30", "list", host("Host: a, b\r\n"), no(400)},
      {"SEC-30", "two words", host("Host: a b\r\n"), no(400)},
      {"SEC-30", "path", host("Host: a/b\r\n"), no(400)},
      {"SEC-30", "user", host("Host: me@a\r\n"), no(400)},
      {"SEC-30", "scheme", host("Host: http://a\r\n"), no(400)},
      {"SEC-30", "port", host("Host: a:8080\r\n"), kKeep},
      {"SEC-30", "port 65535", host("Host: a:65535\r\n"), kKeep},
      {"SEC-30", "port 65536", host("Host: a:65536\r\n"), no(400)},
      {"SEC-30", "port of letters", host("Host: a:http\r\n"), no(400)},
      {"SEC-30", "port empty", host("Host: a:\r\n"), no(400)},
      {"SEC-30", "port only", host("Host: :80\r\n"), no(400)},
      {"SEC-30", "two ports", host("Host: a:80:80\r\n"), no(400)},
      {"SEC-30", "IPv4", host("Host: 127.0.0.1\r\n"), kKeep},
      {"SEC-30", "IPv6", host("Host: [::1]:80\r\n"), kKeep},
      {"SEC-30", "IPv6 without brackets", host("Host: ::1\r\n"), no(400)},
      {"SEC-30", "IPv6 open", host("Host: [::1\r\n"), no(400)},
      {"SEC-30", "IPv6 empty", host("Host: []\r\n"), no(400)},
      {"SEC-30", "behind the brackets", host("Host: [::1]x\r\n"), no(400)},
      {"SEC-30", "percent", host("Host: a%00b\r\n"), no(400)},
      {"SEC-30", "query", host("Host: a?b\r\n"), no(400)},
      {"SEC-30", "above ASCII", host("Host: \xc3\xa9\r\n"), no(400)},
      {"SEC-30", "absolute form", target("http://b/"), kKeep},
      {"SEC-30", "absolute form without host", "GET http://b/ HTTP/1.1\r\n\r\n", no(400)},
      {"SEC-30", "absolute form, two hosts", "GET http://b/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", no(400)},
      {"SEC-30", "absolute form, malformed host", "GET http://b/ HTTP/1.1\r\nHost: a/\r\n\r\n", no(400)},
      {"SEC-30", "absolute form with user", target("http://me@b/"), no(400)},
      {"SEC-30", "absolute form of nobody", target("http:///x"), no(400)},
      {"SEC-30", "absolute form, bad port", target("http://b:99999/"), no(400)},
      {"SEC-30", "absolute form without path", target("http://b"), kKeep},
      {"SEC-30", "absolute form, query only", target("http://b?x"), kKeep},
      {"SEC-30", "absolute form, capital scheme", target("HTTP://b/"), kKeep},
      {"SEC-30", "absolute form, other scheme", target("ftp://b/"), no(400)},
      {"SEC-31", "space", target("/a b"), no(400)},
      {"SEC-31", "tab", target("/a\tb"), no(400)},
      {"SEC-31", "bell", target("/\a"), no(400)},
      {"SEC-31", "DEL", target("/\x7f"), no(400)},
      {"SEC-31", "NUL", target("/\0"s), no(400)},
      {"SEC-31", "above ASCII", target("/\xc3\xa9"), no(400)},
      {"SEC-31", "fragment", target("/a#b"), no(400)},
      {"SEC-31", "fragment in the query", target("/a?b#c"), no(400)},
      {"SEC-31", "fragment only", target("#"), no(400)},
      {"SEC-31", "relative", target("a"), no(400)},
      {"SEC-31", "empty", target(""), no(400)},
      {"SEC-31", "query only", target("?a"), no(400)},
      {"SEC-31", "asterisk of get", target("*"), no(400)},
      {"SEC-31", "asterisk and more", line("OPTIONS *a HTTP/1.1"), no(400)},
      {"SEC-31", "authority", target("a:80"), no(400)},
      {"SEC-31", "escapes", target("/%41%20?%23"), kKeep},
      {"SEC-31", "escape broken", target("/%4"), kKeep},
      {"SEC-31", "two slashes", target("//a"), kKeep},
      {"SEC-31", "two queries", target("/a?b?c"), kKeep},
  };
}

inline std::vector<VerdictRow> ends() {
  const std::string h2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  return {
      {"SEC-33", "get with a body", get("Content-Length: 5\r\n") + "hello", kKeep, "hello"},
      {"SEC-33", "get with a chunked body", get("Transfer-Encoding: chunked\r\n") + "2\r\nok\r\n0\r\n\r\n", kKeep, "ok"},
      {"SEC-33", "get with a body that looks like a request", get("Content-Length: 20\r\n") + kNext + kNext, kKeep, kNext, kNext},
      {"SEC-33", "head with a body", "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxyz", kKeep, "x", "yz"},
      {"SEC-33", "delete with a body", "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxyz", kKeep, "x", "yz"},
      {"SEC-33", "length and next", length("5", "hello" + kNext), kKeep, "hello", kNext},
      {"SEC-33", "length and one byte", length("5", "hellox"), kKeep, "hello", "x"},
      {"SEC-33", "length and line end", length("5", "hello\r\n"), kKeep, "hello", "\r\n"},
      {"SEC-33", "length and bytes of any kind", length("2", "\0\r\0\n"s), kKeep, "\0\r"s, "\0\n"s},
      {"SEC-33", "chunked and next", chunks("5\r\nhello\r\n0\r\n\r\n" + kNext), kKeep, "hello", kNext},
      {"SEC-33", "chunked and one byte", chunks("0\r\n\r\nx"), kKeep, "", "x"},
      {"SEC-33", "chunked and a chunk", chunks("0\r\n\r\n5\r\nhello\r\n"), kKeep, "", "5\r\nhello\r\n"},
      {"SEC-33", "no body and a body", post("", "hello"), kKeep, "", "hello"},
      {"SEC-33", "close and next", get("Connection: close\r\n") + kNext, kClose, "", kNext},
      {"SEC-34", "100-continue", post("Expect: 100-continue\r\nContent-Length: 2\r\n", "ok"), kKeep, "ok"},
      {"SEC-34", "letters of any case", post("expect: 100-CONTINUE\r\nContent-Length: 2\r\n", "ok"), kKeep, "ok"},
      {"SEC-34", "without a body", get("Expect: 100-continue\r\n"), kKeep},
      {"SEC-34", "chunked", post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), kKeep},
      {"SEC-34", "unknown", post("Expect: 200-ok\r\nContent-Length: 2\r\n", "ok"), no(417)},
      {"SEC-34", "unknown without a body", get("Expect: tea\r\n"), no(417)},
      {"SEC-34", "empty", get("Expect:\r\n"), no(417)},
      {"SEC-34", "list", get("Expect: 100-continue, tea\r\n"), no(417)},
      {"SEC-34", "two, one unknown", get("Expect: 100-continue\r\nExpect: tea\r\n"), no(417)},
      {"SEC-34", "parameter", get("Expect: 100-continue;x=y\r\n"), no(417)},
      {"SEC-34", "too large a body", post("Expect: 100-continue\r\nContent-Length: 65\r\n", ""), no(413)},
      {"SEC-35", "upgrade and bytes", get("Connection: upgrade\r\nUpgrade: websocket\r\n") + "\x81\x05hello", kKeep, "",
       "\x81\x05hello"},
      {"SEC-35", "upgrade and a request", get("Connection: upgrade\r\nUpgrade: h2c\r\n") + kNext, kKeep, "", kNext},
      {"SEC-35", "upgrade with a body", post("Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n", "okmore"), kKeep, "ok",
       "more"},
      {"SEC-35", "upgrade and close", get("Connection: close, upgrade\r\nUpgrade: x\r\n") + "x", kClose, "", "x"},
      {"SEC-35", "HTTP/2 preface", h2, no(505)},
      {"SEC-35", "HTTP/2 preface and frames", h2 + "\0\0\0\x04\0\0\0\0\0"s, no(505)},
      {"SEC-35", "HTTP/2 preface begun", "PRI * HTTP/2.0\r", no(505)},
      {"SEC-35", "PRI of 1.1", line("PRI * HTTP/1.1"), no(501)},
      {"SEC-35", "TLS hello", "\x16\x03\x01\x02\0\x01"s, no(400)},
      {"SEC-35", "WebSocket frame", "\x81\x85", no(400)},
  };
}

}  // namespace table

inline std::vector<VerdictRow> verdictTable() {
  std::vector<VerdictRow> all;
  for (const auto& part : {table::ordinary(), table::limits(), table::lengths(), table::codings(), table::lines(),
                           table::chunkLines(), table::targets(), table::ends()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace sylar::http
