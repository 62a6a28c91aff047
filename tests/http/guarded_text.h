// A text that ends where the memory ends, so that reading past it is a fault.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace sylar::http {

// Memory whose last byte is the last before an unmapped page.
class GuardedText {
 public:
  explicit GuardedText(size_t size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    m_size = (size + page - 1) / page * page;
    m_map = static_cast<char*>(mmap(nullptr, m_size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(m_map, MAP_FAILED);
    EXPECT_EQ(mprotect(m_map, m_size, PROT_READ | PROT_WRITE), 0);
    m_mapped = m_size + page;
  }
  ~GuardedText() { munmap(m_map, m_mapped); }
  GuardedText(const GuardedText&) = delete;
  GuardedText& operator=(const GuardedText&) = delete;

  std::string_view put(std::string_view text) {
    char* at = m_map + m_size - text.size();
    std::copy(text.begin(), text.end(), at);
    return {at, text.size()};
  }

 private:
  char* m_map;
  size_t m_size, m_mapped;
};

}  // namespace sylar::http
