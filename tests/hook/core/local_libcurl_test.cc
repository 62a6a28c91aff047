// curl_easy_perform in a program that knows no libcurl. A plugin of its may bring one.
#include <dlfcn.h>

#include "tests/hook/support.h"
#include "tests/support/beside_program.h"

extern "C" int curl_easy_perform(void* easy);  // the hook

namespace sylar::test {
namespace {

enum CurlCode : int { kFailedInit = 2, kBadFunctionArgument = 43 };

TEST(LocalLibcurl, IsMissing) { EXPECT_EQ(::curl_easy_perform(nullptr), kFailedInit); }

// Cause: the hook looked for the plugin at the address to which the call returns, which is the program's own after a tail call.
TEST(LocalLibcurl, IsFoundByATailCall) {
  void* const plugin = ::dlopen(besideProgram(SYLAR_PLUGIN).c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << ::dlerror();
  ASSERT_EQ(::dlsym(RTLD_DEFAULT, "curl_easy_init"), nullptr) << "the program sees a libcurl";
  const auto perform = reinterpret_cast<int (*)(void*)>(::dlsym(plugin, "perform"));
  ASSERT_NE(perform, nullptr);
  EXPECT_EQ(perform(nullptr), kBadFunctionArgument);
  inFiber([&] { EXPECT_EQ(perform(nullptr), kBadFunctionArgument); });
  EXPECT_EQ(::dlclose(plugin), 0);
}

}  // namespace
}  // namespace sylar::test
