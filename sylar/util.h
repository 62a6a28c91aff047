// Sylar's name of the small helpers, which are several here.
#pragma once

#include "sylar/base/fs_util.h"
#include "sylar/base/string_util.h"
#include "sylar/base/util.h"
#include "sylar/log/fiber_id.h"
