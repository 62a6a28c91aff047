// Sylar's name of sylar/timer/timer.h.
#pragma once

#include "sylar/timer/timer.h"
