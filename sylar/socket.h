// Sylar's name of sylar/net/socket.h.
#pragma once

#include "sylar/net/socket.h"
