// Sylar's name of sylar/net/tcp_server.h.
#pragma once

#include "sylar/net/tcp_server.h"
