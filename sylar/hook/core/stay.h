// Internal. Where a call that waits goes on when its number is closed (setHookClose).
//
//   Stay stay;
//   stay.begin(fd, generation, engine);          before the first wait
//   ... the wait ends with "closed", or a pin fails ...
//   const int copy = stay.copy();                the number with which the call goes on, or none
//
// Under HookClose::kPosix a call that waits stays with its open file, as in the kernel, which holds the file and not the number. A
// close first looks for such calls of its number. If there are any, it makes a second number for the open file, the copy, and
// writes it into their stays. Then it goes on as any close: it wakes the waiters, waits for the pins, closes the number. Those who
// were woken find the copy, and so do those who were on their way from one wait to the next. The last of them closes the copy.
//
// The copy is one of the library's own descriptors, so no program closes it, and a stay moves only once.
//
// Thread safety: a stay belongs to its call; closers reach it under a lock.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"

namespace sylar::detail {

class EpollEngine;

class Stay {
 public:
  static constexpr int kNone = -1;
  static constexpr int kRefused = -2;  ///< there was no number for a copy

  constexpr Stay() = default;
  ~Stay() {
    if (m_begun) end();
  }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

  /// From here on the call, of a fiber at `engine`, stays with the file that is open as `fd` in this generation. Has no effect if
  /// the number has been closed since, because then the call comes after the close; nor in a forked child.
  void begin(int fd, uint32_t generation, const EpollEngine& engine);
  /// Returns the number with which the call goes on if its own was closed, or kNone. A close that has just begun is awaited, as far
  /// as it takes to make the copy.
  int copy();

  /// Has closers look for stays from now on.
  static void beKept();
  /// Closes, in a forked child, the copies of the parent's calls, which are none of the child's.
  static void closeCopiesInChild();

 private:
  struct Bucket;
  class Keeper;

  static Bucket& bucketOf(int fd);
  void end();

  bool m_begun = false;
  bool m_linked = false;
  bool m_warned = false;
  int m_fd;
  uint32_t m_generation;
  int m_copy;
  const EpollEngine* m_engine;
  Stay* m_next;
  Stay** m_at;  // the pointer to this
};

}  // namespace sylar::detail
