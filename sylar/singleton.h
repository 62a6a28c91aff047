// Sylar's name of sylar/base/singleton.h.
#pragma once

#include "sylar/base/singleton.h"
