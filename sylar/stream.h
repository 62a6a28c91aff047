// Sylar's name of sylar/net/stream.h.
#pragma once

#include "sylar/net/stream.h"
