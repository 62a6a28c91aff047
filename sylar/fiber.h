// Sylar's name of sylar/fiber/fiber.h.
#pragma once

#include "sylar/fiber/fiber.h"
