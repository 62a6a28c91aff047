// Internal. How stopTimerSync() waits in fibers: the caller parks, and its worker goes on.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/timer/run_waits.h"

namespace sylar::detail {

/// Returns the way of waiting by which a fiber on a worker parks, shielded from cancel, and any other caller blocks its thread.
const RunWaits& fiberRunWaits();

}  // namespace sylar::detail
