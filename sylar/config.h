// Sylar's name of sylar/config/config.h.
#pragma once

#include "sylar/config/config.h"
