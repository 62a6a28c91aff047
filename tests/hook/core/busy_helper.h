// For tests: the only helper thread of the pool at work, so that what others give it waits.
#pragma once

#include "sylar/sync/blocking.h"
#include "tests/hook/support.h"

namespace sylar::test {

/// For as long as it lives, the pool has one thread.
class BusyHelper {
 public:
  BusyHelper() { setBlockingLimits({.max_threads = 1}); }
  ~BusyHelper() { setBlockingLimits({}); }
  BusyHelper(const BusyHelper&) = delete;
  BusyHelper& operator=(const BusyHelper&) = delete;

  /// Called in a fiber. When it returns, the helper thread is at work until release().
  void begin() {
    IOManager::GetThis()->schedule([this] {
      blocking([this] {
        EXPECT_EQ(::write(m_at_work.b, "x", 1), 1);
        await(m_gate.a);
      });
    });
    await(m_at_work.a);
  }
  void release() { EXPECT_EQ(::write(m_gate.b, "x", 1), 1); }

 private:
  static void await(int fd) {
    char byte;
    EXPECT_EQ(::read(fd, &byte, 1), 1);
  }

  const Pair m_gate = pipePair(), m_at_work = pipePair();
};

}  // namespace sylar::test
