// Sets the engine that SYLAR_TEST_IO_ENGINE names, so that a program's tests run with that one: uring.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sylar/iomanager.h"

namespace {

[[maybe_unused]] const bool g_io_engine_is_set = [] {
  const char* const given = std::getenv("SYLAR_TEST_IO_ENGINE");
  if (given == nullptr) return false;
  if (std::string(given) != "uring") throw std::invalid_argument(std::string("SYLAR_TEST_IO_ENGINE=") + given);
  sylar::setIOEngine(sylar::IOEngine::kUring);
  return true;
}();

}  // namespace
