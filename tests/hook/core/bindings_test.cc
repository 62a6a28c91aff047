// HA-1: what the loader has bound client libraries to, hook by hook: ours, in every library that the program brings.
#include <curl/curl.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sylar/hook.h"

namespace sylar::test {
namespace {

const std::set<std::string_view> kNames{"read",       "write",      "recv",   "send",  "sendto",  "recvfrom", "connect",
                                        "accept",     "poll",       "socket", "close", "fcntl",   "sleep",    "usleep",
                                        "__poll_chk", "__read_chk", "dup2",   "pipe",  "sendmsg", "open"};

/// Returns the file name of the loaded object that contains `address`.
std::string objectOf(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0) return "nothing";
  const std::string_view path = info.dli_fname;
  return std::string(path.substr(path.rfind('/') + 1));
}

/// For each import of a hooked name: (library, name) -> the object that it is bound to.
using Bindings = std::map<std::pair<std::string, std::string>, std::string>;

template <class T>
const T* at(const dl_phdr_info& object, uintptr_t address) {  // the loader has moved most of these, but not the vdso's
  return reinterpret_cast<const T*>(address < object.dlpi_addr ? object.dlpi_addr + address : address);
}

void addBindings(const dl_phdr_info& object, Bindings& out) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  }
  if (dynamic == nullptr) return;
  std::map<int64_t, uintptr_t> of;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) of[dynamic->d_tag] = dynamic->d_un.d_ptr;
  const auto* const symbols = at<ElfW(Sym)>(object, of[DT_SYMTAB]);
  const char* const strings = at<char>(object, of[DT_STRTAB]);
  const std::string library = objectOf(strings);
  for (const auto& [table, size] : {std::pair{DT_JMPREL, DT_PLTRELSZ}, std::pair{DT_RELA, DT_RELASZ}}) {
    if (of[table] == 0) continue;
    const auto* const first = at<ElfW(Rela)>(object, of[table]);
    for (const auto* entry = first; entry != first + of[size] / sizeof *first; ++entry) {
      const auto& symbol = symbols[ELF64_R_SYM(entry->r_info)];
      const char* const name = strings + symbol.st_name;
      if (symbol.st_shndx != SHN_UNDEF || !kNames.contains(name)) continue;
      const std::string bound = objectOf(*reinterpret_cast<void**>(object.dlpi_addr + entry->r_offset));
      if (bound != library) out[{library, name}] = bound;  // else it waits for its first call
    }
  }
}

Bindings bindings() {
  Bindings found;
  const auto add = [](dl_phdr_info* object, size_t, void* out) {
    addBindings(*object, *static_cast<Bindings*>(out));
    return 0;
  };
  ::dl_iterate_phdr(add, &found);
  return found;
}

TEST(Bindings, OfEveryLibraryAreTheHooks) {  // HA-1
  ASSERT_NE(::PQlibVersion(), 0);            // so that the linker keeps them
  ASSERT_NE(::curl_version(), nullptr);
  redisReader* const reader = ::redisReaderCreate();
  ::redisReaderFree(reader);

  const std::string hooks = objectOf(reinterpret_cast<void*>(&::connect_with_timeout));
  const Bindings found = bindings();
  for (const auto& [import, bound] : found) {
    const auto& [library, name] = import;
    if (library.starts_with("libclang_rt") || library.starts_with("libasan") || library.starts_with("libtsan")) continue;
    EXPECT_EQ(bound, hooks) << library << " calls " << name;
  }
  const auto imports = [&](std::string_view prefix, const char* name) {
    const auto of = [&](const auto& one) { return one.first.first.starts_with(prefix) && one.first.second == name; };
    return std::any_of(found.begin(), found.end(), of);
  };
  for (const char* name : {"poll", "connect", "recv", "send"}) EXPECT_TRUE(imports("libpq.so", name)) << name;
  for (const char* name : {"poll", "connect", "read", "close"}) EXPECT_TRUE(imports("libcurl", name)) << name;
  EXPECT_TRUE(imports("libhiredis.so", "poll"));
}

TEST(Bindings, OfALibraryThatComesLaterAreTheHooks) {  // a plugin
  void* const plugin = ::dlopen("libmariadb.so.3", RTLD_NOW);
  ASSERT_NE(plugin, nullptr) << ::dlerror();
  const std::string hooks = objectOf(reinterpret_cast<void*>(&::connect_with_timeout));
  size_t imports = 0;
  for (const auto& [import, bound] : bindings()) {
    if (!import.first.starts_with("libmariadb")) continue;
    EXPECT_EQ(bound, hooks) << import.second;
    ++imports;
  }
  EXPECT_GE(imports, 5U);  // connect, recv, send, poll, close and others
  ::dlclose(plugin);
}

}  // namespace
}  // namespace sylar::test
