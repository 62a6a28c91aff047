// Sylar's name of sylar/log/log.h.
#pragma once

#include "sylar/log/log.h"
