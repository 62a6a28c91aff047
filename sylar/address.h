// Sylar's name of sylar/net/address.h.
#pragma once

#include "sylar/net/address.h"
