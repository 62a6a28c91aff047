// The parking tests once more, as a hardened program is built: its calls go to the checking aliases. CD-H10
#ifdef __OPTIMIZE__
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2
#endif
#include "tests/hook/fd/parking_test.cc"  // NOLINT: on purpose
