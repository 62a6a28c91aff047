// Internal. Writes the queued log lines of a process that crashes before it dies.
//
// Handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT wait until all queued lines have been written, and then pass the
// signal on to the previous handler: the report of a stack overflow, the program's handler, or the default action. abort() and an
// uncaught exception arrive here as SIGABRT. A handler that the program installs later replaces ours, and may chain to it.
//
// Thread safety: all calls from any thread.
#pragma once

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Has `write` called in the handlers of these signals, on the crashing thread, so it must be safe there. Only the first call
/// counts.
void writeBeforeCrash(void (*write)());

}  // namespace sylar::detail
