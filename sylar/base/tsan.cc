#include "sylar/base/tsan.h"

#ifdef SYLAR_TSAN

#include <cerrno>
#include <cstdlib>
#include <string_view>

extern "C" {  // exported by the runtimes of both compilers, declared by neither
void __tsan_acquire(void* at);
void __tsan_release(void* at);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateBenignRaceSized(const char* file, int line, void* at, size_t size, const char* why);
}

namespace sylar::tsan {
namespace {

constinit bool g_strict = false;

/// Runs before all other code, because the mode must not change while there is an Exempt.
[[gnu::constructor(101)]] void readMode() {
  const char* const given = std::getenv("SYLAR_TSAN_STRICT");
  g_strict = given != nullptr && std::string_view(given) == "1";
}

}  // namespace

bool strict() { return g_strict; }

void release(const void* at) {
  if (strict()) __tsan_release(const_cast<void*>(at));
}

void acquire(const void* at) {
  if (strict()) __tsan_acquire(const_cast<void*>(at));
}

Exempt::Exempt() {
  if (!strict()) return;
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

Exempt::~Exempt() {
  if (!strict()) return;
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void exemptErrno() {
  if (strict()) AnnotateBenignRaceSized(__FILE__, __LINE__, &errno, sizeof errno, "carried by each switch");
}

}  // namespace sylar::tsan

#endif
