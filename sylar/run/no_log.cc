// Instead of base/log.cc. The program's standard error is its own, so nothing is logged, and spdlog is not needed.
#include "sylar/base/log.h"

namespace sylar::log {

void setLevel(Level /*level*/) {}
void setSink(const Sink& /*sink*/) {}
bool enabled(Level /*level*/) { return false; }
void write(Level /*level*/, std::string_view /*line*/) noexcept {}
void noMemory() noexcept {}
void appendEscaped(std::string& line, std::string_view text) { line += text; }
void writeToStderr(Level /*level*/, std::string_view /*line*/) noexcept {}

}  // namespace sylar::log
