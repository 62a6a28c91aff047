// Internal. What `sylar-run --report` tells at the end of the program: which calls it has made in main, which of them have waited
// and for how long, and what has held the thread.
#pragma once

#include "sylar/base/internal.h"
#include "sylar/scheduler.h"

namespace sylar::detail {

/// The environment variable by which sylar-run asks the object for a report.
inline constexpr char kReportVariable[] = "SYLAR_RUN_REPORT";

/// Begins to watch the worker of `scheduler`, if the environment asks for a report, which exit(3) then writes to what stderr is
/// now. Without memory or a thread there is none.
void beginReport(Scheduler& scheduler);

}  // namespace sylar::detail
