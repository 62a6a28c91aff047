// The bytes of a connection, through the parser and the commands. Promises: nothing is read out of bounds, the replies do not
// depend on how the bytes were cut, and the keys are consistent afterwards.
#include <algorithm>
#include <cstring>
#include <string>

#include "examples/ttlkv/command.h"
#include "examples/ttlkv/request_reader.h"
#include "sylar/check.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/ttlkv/store.h"

namespace {

using namespace ttlkv;

/// Returns whether the replies of a command depend on more than the input, or the command acts on the process.
bool isLeftOut(std::string_view name) {
  for (const char* each : {"time", "info", "save", "bgsave", "shutdown"}) {
    if (equalsIgnoringCase(name, each)) return true;
  }
  return false;
}

std::string transcript(const std::vector<std::string_view>& pieces) {
  Options options;
  options.shards = 4;
  test::Store store(options);
  RequestReader reader(100'000);
  std::string text;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const auto space = reader.space();
      const size_t size = std::min(space.size(), piece.size());
      std::memcpy(space.data(), piece.data(), size);
      reader.received(size);
      piece.remove_prefix(size);
      while (reader.next() == RequestReader::kRequest) {
        store.clock.advance(std::chrono::milliseconds(100));
        if (reader.args().empty() || isLeftOut(reader.args()[0])) continue;
        text += store.client.ask({reader.args().begin(), reader.args().end()});
      }
    }
  }
  SYLAR_CHECK(store.engine.keyspace().verify());
  return text + reader.error();
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
