// Sylar's name of sylar/app/application.h.
#pragma once

#include "sylar/app/application.h"
