// Requests on one connection. Promises: nothing is read out of bounds or lost; what is understood does not depend on how the
// bytes were cut; and where Boost.Beast alone accepts a message that we accept, it sees the same body and the same end.
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "../http/memory_stream.h"
#include "fuzz_target.h"
#include "sylar/base/check.h"
#include "sylar/http/request_reader.h"

namespace {

using namespace sylar::http;

// Small, so that a fuzzer gets past them.
HttpLimits fuzzLimits() {
  HttpLimits limits;
  limits.max_request_line = 96;
  limits.max_header_line = 64;
  limits.max_header_bytes = 256;
  limits.max_headers = 8;
  limits.max_body = 64;
  limits.max_chunk_line = 20;
  limits.max_chunk_extensions = 40;
  limits.max_trailer_bytes = 64;
  limits.max_params = 4;
  limits.max_cookies = 4;
  return limits;
}

void append(std::string& text, const FieldList& fields) {
  for (size_t i = 0; i < fields.size(); ++i) text.append("|").append(fields[i].name).append("=").append(fields[i].value);
}

// Everything that was understood, as text.
std::string transcript(const std::vector<std::string_view>& pieces) {
  const HttpLimits limits = fuzzLimits();
  MemorySource source;
  for (const std::string_view piece : pieces) source.send(piece);
  MemorySink sink;
  RequestReader reader(source, sink, limits);
  HttpRequest request;
  std::string text;
  for (;;) {
    const Verdict verdict = reader.read(request);
    text += std::to_string(static_cast<int>(verdict.kind)) + ' ' + std::to_string(static_cast<int>(verdict.status)) + verdict.why;
    if (!verdict.ok()) return text;
    text += std::string(verdict.keep_alive ? " keep " : " close ") + HttpMethodToString(request.getMethod()) + ' ' +
            request.getPath() + '?' + request.getQuery();
    append(text, request.headers());
    text += "|body=" + request.getBody();
    append(text, request.trailers());
    text += "|left=" + std::string(reader.buffered()) + source.unread() + '\n';
    if (!verdict.keep_alive) return text;
  }
}

void compareWithBeast(std::string_view input) {
  const HttpLimits limits = fuzzLimits();
  MemorySource source;
  source.send(input);
  MemorySink sink;
  RequestReader reader(source, sink, limits);
  HttpRequest request;
  if (!reader.read(request).ok()) return;
  const size_t left = reader.buffered().size() + source.unread().size();

  namespace http = boost::beast::http;
  if (input.starts_with("\r\n")) input.remove_prefix(2);
  http::request_parser<http::string_body> beast;
  beast.eager(true);
  boost::beast::error_code error;
  size_t taken = 0;
  while (!error && !beast.is_done()) {
    const size_t count = beast.put(boost::asio::const_buffer(input.data() + taken, input.size() - taken), error);
    taken += count;
    if (count == 0) break;
  }
  if (error || !beast.is_done()) return;
  SYLAR_CHECK(beast.get().body() == request.getBody());
  SYLAR_CHECK_EQ(input.size() - taken, left);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string first;
  for (const auto& pieces : sylar::fuzz::waysToCut(input)) {
    const std::string text = transcript(pieces);
    if (first.empty()) first = text;
    SYLAR_CHECK(text == first);
  }
  compareWithBeast(input);
  return 0;
}
