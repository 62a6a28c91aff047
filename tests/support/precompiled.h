// What the sanitizers' builds compile once for all tests. Nothing relies on it: a release has none.
#pragma once

#include <gtest/gtest.h>

#include "sylar/base/precompiled.h"
