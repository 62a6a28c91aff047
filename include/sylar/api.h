// SYLAR_API marks what programs may use of libraries whose other names are hidden.
#pragma once

/// Makes a class or function visible outside of its shared library. Source: GCC's manual, visibility.
#define SYLAR_API __attribute__((visibility("default")))
