// Instead of fiber/overflow.cc. The program's faults and its signal stack are its own.
#include "sylar/fiber/overflow.h"

namespace sylar::detail {

OverflowReport::OverflowReport(const FiberCore* (*)(const void*)) {}
OverflowReport::~OverflowReport() { (void)m_signal_stack; }

}  // namespace sylar::detail
