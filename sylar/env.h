// Sylar's name of sylar/config/env.h.
#pragma once

#include "sylar/config/env.h"
