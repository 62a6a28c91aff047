// Sylar's name of sylar/sched/scheduler.h.
#pragma once

#include "sylar/sched/scheduler.h"
