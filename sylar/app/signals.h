// Internal. The signals of a service: SIGTERM and SIGINT end it, SIGHUP has it read its configuration again, SIGUSR2 has it
// replaced.
//
// Thread safety: blockSignals() and releaseEndSignals() affect the calling thread, and threads that it makes later; one thread at
// a time may call the others.
#pragma once

#include <chrono>
#include <future>

#include "sylar/base/internal.h"

namespace sylar::detail {

/// Blocks all four signals, so that they stay pending until a function below takes them.
void blockSignals();

/// Waits for one of the four signals and returns it. SIGTERM and SIGINT take precedence over the others, whichever came first, and
/// all of them that are pending by then count as one. Source: sigwait(3).
int awaitSignal();

/// Waits for `ended`. Returns false if SIGTERM or SIGINT came first.
bool endsBeforeASignal(const std::future<void>& ended);

/// Lets SIGTERM and SIGINT end the process at once from here on.
void releaseEndSignals();

}  // namespace sylar::detail
