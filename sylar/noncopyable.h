// Sylar's name of sylar/base/noncopyable.h.
#pragma once

#include "sylar/base/noncopyable.h"
