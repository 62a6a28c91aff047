// Requests on one connection. Promises: nothing is read out of bounds or lost; what is understood does not depend on how the
// bytes were cut; and Boost.Beast finds the same parts in a head that we accept, the same body and the same end.
#include "../http/beast_oracle.h"
#include "../http/memory_stream.h"
#include "fuzz_target.h"
#include "sylar/check.h"
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
  checkWithBeast(input, request, reader.buffered().size() + source.unread().size());
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
