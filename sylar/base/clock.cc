#include "sylar/clock.h"

#include <time.h>

namespace sylar {
namespace {

class SteadyClock final : public Clock {
 public:
  constexpr SteadyClock() = default;
  int64_t nowNs() const override {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }
};

// Never destroyed, because a static's destructor may still sleep or arm a timer.
union Immortal {
  constexpr Immortal() : clock() {}
  ~Immortal() {}
  SteadyClock clock;
};
constinit Immortal g_steady;

}  // namespace

const Clock& steadyClock() { return g_steady.clock; }

}  // namespace sylar
