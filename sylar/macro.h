// Sylar's name of sylar/base/macro.h.
#pragma once

#include "sylar/base/macro.h"
