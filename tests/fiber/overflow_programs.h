// Ways to run out of stack, in ordinary code. Built by each compiler that there is, with -O0 and with -O2: what is left of a
// recursion or of a frame depends on both. And with -O2 as programs are built that do not know of the library's flags.
#pragma once

namespace sylar::test {

struct OverflowPrograms {
  const char* build;
  void (*recursion)();
  void (*one_frame)();    ///< of 30 KB
  void (*large_frame)();  ///< of 1 MB: more than the stack, and nearly all of the guard
  void (*allocas)();
};

/// Called by each build of the programs before main begins; defined by the test.
bool add(const OverflowPrograms& programs);

}  // namespace sylar::test
