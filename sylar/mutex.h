// Sylar's name of sylar/base/mutex.h.
#pragma once

#include "sylar/base/mutex.h"
