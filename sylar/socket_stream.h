// Sylar's name of sylar/net/socket_stream.h.
#pragma once

#include "sylar/net/socket_stream.h"
