#include "sylar/log/last_words.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "sylar/base/chained_handler.h"

namespace sylar::detail {
namespace {

struct Fatal {
  int signal;
  ChainedHandler handler = {};
};
constinit std::array<Fatal, 5> g_fatal{{{SIGSEGV}, {SIGBUS}, {SIGFPE}, {SIGILL}, {SIGABRT}}};
using Write = void (*)();
constinit Write g_write = nullptr;

void onFatalSignal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  g_write();
  std::ranges::find(g_fatal, signal, &Fatal::signal)->handler.passOn(signal, info, context);
  errno = saved_errno;
}

}  // namespace

void writeBeforeCrash(void (*write)()) {
  static const bool installed = [write] {
    g_write = write;
    for (Fatal& fatal : g_fatal) fatal.handler.install(fatal.signal, onFatalSignal);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace sylar::detail
