// Sylar's name of sylar/base/thread.h.
#pragma once

#include "sylar/base/thread.h"
