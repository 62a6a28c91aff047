// The version of the library, for the preprocessor and for messages. CMake reads it from here. docs/versioning.md explains what
// a change of each number means.
#pragma once

#define SYLAR_VERSION_MAJOR 0
#define SYLAR_VERSION_MINOR 1
#define SYLAR_VERSION_PATCH 0

/// One number that grows with each release: 0.1.0 is 100, 1.2.3 is 10203.
#define SYLAR_VERSION (SYLAR_VERSION_MAJOR * 10000 + SYLAR_VERSION_MINOR * 100 + SYLAR_VERSION_PATCH)
