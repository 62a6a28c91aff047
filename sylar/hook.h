// Sylar's name of sylar/hook/hook.h.
#pragma once

#include "sylar/hook/hook.h"
