// Sylar's name of sylar/io/iomanager.h.
#pragma once

#include "sylar/io/iomanager.h"
