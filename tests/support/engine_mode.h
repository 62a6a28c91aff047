// The engine that a test needs.
#pragma once

#include "sylar/iomanager.h"

namespace sylar::test {

/// Sets setIOEngine() for as long as it lives.
class EngineMode {
 public:
  explicit EngineMode(IOEngine engine) { setIOEngine(engine); }
  ~EngineMode() { setIOEngine(m_before); }
  EngineMode(const EngineMode&) = delete;
  EngineMode& operator=(const EngineMode&) = delete;

 private:
  const IOEngine m_before = ioEngine();
};

}  // namespace sylar::test
