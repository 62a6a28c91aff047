// For tests: marks a function that calls a hook by a pointer whose type is not quite the hook's own, because the hook is another
// name of a function, or is defined without the library's header. UndefinedBehaviorSanitizer would end the test.
#pragma once

#ifdef __clang__
#define SYLAR_CALLS_ALIAS [[clang::no_sanitize("function")]]
#else
#define SYLAR_CALLS_ALIAS
#endif
