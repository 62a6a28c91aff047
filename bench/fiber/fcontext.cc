// Yardstick of topic `fiber`: Boost.Context's fcontext by hand, without any scheduler. Nobody can switch or start for less.
//
//   fcontext CASE N        cases yield and spawn of sylar_fibers
//
// yield   two contexts jump to each other                                   operation: one way
// spawn   a context is made on a stack that is used again, runs, and ends    one context
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

#include "bench/support/stopwatch.h"

namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr size_t kStackBytes = 64 * 1024;

void bounce(transfer_t from) {
  for (;;) from = jump_fcontext(from.fctx, nullptr);
}

void endAtOnce(transfer_t from) { jump_fcontext(from.fctx, nullptr); }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 2 ? argv[1] : "";
  const int n = argc > 2 ? std::atoi(argv[2]) : 0;
  if (n < 1 || (name != "yield" && name != "spawn")) {
    std::fprintf(stderr, "usage: fcontext yield|spawn N\n");
    return 2;
  }
  std::vector<char> stack(kStackBytes);
  char* const top = stack.data() + kStackBytes;
  if (name == "yield") {
    transfer_t other = jump_fcontext(make_fcontext(top, kStackBytes, bounce), nullptr);
    const bench::Stopwatch watch;
    for (int i = 0; i < n; ++i) other = jump_fcontext(other.fctx, nullptr);
    watch.print(2.0 * n);
  } else {
    const bench::Stopwatch watch;
    for (int i = 0; i < n; ++i) jump_fcontext(make_fcontext(top, kStackBytes, endAtOnce), nullptr);
    watch.print(n);
  }
}
