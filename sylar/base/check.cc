#include "sylar/check.h"

#include <execinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "sylar/base/sys.h"

namespace sylar::detail {
namespace {

[[noreturn]] void die(const char* message, int length) {
  sys::writeAll(STDERR_FILENO, message, static_cast<size_t>(length));
  void* frames[64];
  const int depth = backtrace(frames, 64);
  backtrace_symbols_fd(frames, depth, STDERR_FILENO);
  std::abort();
}

}  // namespace

void checkFailed(const char* file, int line, const char* what, std::string_view text) {
  char message[512];
  const int length = std::snprintf(message, sizeof message, "sylar: %s:%d: check failed: %s%s%.*s\n", file, line, what,
                                   text.empty() ? "" : ": ", static_cast<int>(text.size()), text.data());
  die(message, length < static_cast<int>(sizeof message) ? length : static_cast<int>(sizeof message) - 1);
}

void checkFailed(const char* file, int line, const char* what, int64_t a, int64_t b) {
  char values[64];
  const int length =
      std::snprintf(values, sizeof values, "%lld against %lld", static_cast<long long>(a), static_cast<long long>(b));
  checkFailed(file, line, what, std::string_view(values, static_cast<size_t>(length)));
}

}  // namespace sylar::detail
