// A chunked body. Promises: nothing is read out of bounds; data, trailers, end and refusal do not depend on how the bytes were
// cut.
#include "fuzz_target.h"
#include "sylar/check.h"
#include "sylar/http/chunk_decoder.h"

namespace {

using namespace sylar::http;

HttpLimits fuzzLimits() {
  HttpLimits limits;
  limits.max_chunk_line = 24;
  limits.max_chunk_extensions = 48;
  limits.max_trailer_bytes = 64;
  limits.max_headers = 4;
  return limits;
}

std::string transcript(const std::vector<std::string_view>& pieces) {
  const HttpLimits limits = fuzzLimits();
  ChunkDecoder decoder(limits);
  decoder.start();
  std::string text;
  size_t used = 0;
  for (std::string_view piece : pieces) {
    while (!piece.empty() && !decoder.isDone() && !decoder.isBad()) {
      size_t count = static_cast<size_t>(std::min<uint64_t>(decoder.dataLeft(), piece.size()));
      if (count > 0) {
        text.append(piece.substr(0, count));
        decoder.tookData(count);
      } else {
        count = decoder.feed(piece);
        SYLAR_CHECK((count > 0 || decoder.isBad()) && count <= piece.size());
      }
      used += count;
      piece.remove_prefix(count);
    }
  }
  text += decoder.isDone() ? " done" : decoder.isBad() ? " bad" : " more";
  if (!decoder.isBad()) text += std::to_string(used) + ' ' + std::to_string(decoder.dataLeft());
  if (decoder.isDone()) {
    FieldList trailers;
    decoder.takeTrailers(trailers);
    for (size_t i = 0; i < trailers.size(); ++i) text.append("|").append(trailers[i].name).append("=").append(trailers[i].value);
  }
  return text;
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
  return 0;
}
