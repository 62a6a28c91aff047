// Hooked against raw: errors that the kernel reports before it waits.
#include <sys/resource.h>

#include "tests/hook/fd/kinds.h"

namespace sylar::test {
namespace {

int keptListener(Run& run) { return run.keep(boundSocket(run.make, SOCK_STREAM)); }

void acceptWithInvalidFlags(Run& run) {
  const int listener = keptListener(run);
  run.got("accept4", run.call.accept4(listener, nullptr, nullptr, opaque(1)));
  const int copy = run.keep(run.call.dup(listener));
  run.got("accept4 on a copy", run.call.accept4(copy, nullptr, nullptr, opaque(1)));
}

/// As long as it lives the process has no number left.
class NoNumbers {
 public:
  NoNumbers() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &m_limit), 0);
    rlimit none = m_limit;
    none.rlim_cur = 0;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoNumbers() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &m_limit), 0); }
  NoNumbers(const NoNumbers&) = delete;
  NoNumbers& operator=(const NoNumbers&) = delete;

 private:
  rlimit m_limit{};
};

void acceptWithoutANumber(Run& run) {
  for (const bool shared : {false, true}) {
    const int listener = keptListener(run);
    if (shared) run.keep(run.call.dup(listener));
    const NoNumbers none;
    run.got("accept", run.call.accept(listener, nullptr, nullptr));
    run.got("accept4", run.call.accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  }
}

void fullEventfd(Run& run) {
  const int fd = run.keep(::eventfd(0, 0));
  const uint64_t most = UINT64_MAX - 1;
  run.got("write of the most", run.call.write(fd, &most, sizeof most));
  const uint64_t too_much = UINT64_MAX;
  const uint64_t one[2] = {1, 1};
  run.got("write of 4 bytes", run.call.write(fd, one, 4));
  run.got("write of 0 bytes", run.call.write(fd, one, 0));
  run.got("write of too much", run.call.write(fd, &too_much, sizeof too_much));
  run.got("write from a bad pointer", run.call.write(fd, badPointer(), sizeof one[0]));
  const iovec part{const_cast<uint64_t*>(one), 4};
  run.got("writev of 4 bytes", run.call.writev(fd, &part, 1));
  const iovec bad{badPointer(), sizeof one[0]};
  run.got("writev from a bad pointer", run.call.writev(fd, &bad, 1));
  run.later([=](const Calls& libc) {
    uint64_t all;
    libc.read(fd, &all, sizeof all);
  });
  run.got("write that waits", run.call.write(fd, one, sizeof one[0]));
}

std::vector<Case> cases() {
  return {
      {"AcceptWithInvalidFlags", acceptWithInvalidFlags},
      {"AcceptWithoutANumber", acceptWithoutANumber},
      {"FullEventfd", fullEventfd},
  };
}

class RefusalTest : public SameAsLibc {};

// HA-5
TEST_P(RefusalTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, RefusalTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
