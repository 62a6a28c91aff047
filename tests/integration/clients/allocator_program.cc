// Allocates in many fibers beside threads that contend with them, for a run under an allocator that is preloaded. A lock that the
// allocator waits for suspends the fiber in the middle of malloc, and another of its worker enters with the same thread cache,
// unless it is a thread of its own to the allocator. Every block must keep what its owner has written, and everything must end.
//
//   allocator_program OBJECT BLOCKS [worker]     with OBJECT preloaded; BLOCKS by each fiber; "worker" runs the fibers as it
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sylar/hook.h"
#include "sylar/iomanager.h"

namespace {

constexpr unsigned kThreads = 8;
constexpr unsigned kFibers = 48;

std::atomic<bool> g_end{false};
std::atomic<unsigned long> g_blocks{0};
std::atomic<unsigned long> g_damaged{0};

/// A block of which three bytes have one value.
class Block {
 public:
  Block() = default;
  ~Block() { give(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void take(size_t size, unsigned char mark) {
    give();
    m_size = size;
    m_mark = mark;
    m_bytes = static_cast<unsigned char*>(std::malloc(size));
    m_bytes[0] = m_bytes[size / 2] = m_bytes[size - 1] = mark;
  }

 private:
  void give() {
    if (m_bytes == nullptr) return;
    if (m_bytes[0] != m_mark || m_bytes[m_size / 2] != m_mark || m_bytes[m_size - 1] != m_mark) ++g_damaged;
    std::free(m_bytes);
  }

  unsigned char* m_bytes = nullptr;
  size_t m_size = 0;
  unsigned char m_mark = 0;
};

/// Takes blocks of all sizes and gives them back in any order. `count` 0: until the end.
void allocate(unsigned seed, unsigned long count, bool waits) {
  std::minstd_rand random(seed);
  std::vector<Block> mine(200);
  for (unsigned long i = 0; count == 0 ? !g_end : i < count; ++i) {
    const unsigned kind = random() % 100;
    const size_t size = 1 + random() % (kind < 70 ? 512 : kind < 95 ? 16384 : 300'000);
    mine[random() % mine.size()].take(size, static_cast<unsigned char>(random()));
    ++g_blocks;
    if (waits && i % 32 == 0) ::usleep(0);
  }
}

/// Returns true if malloc is that of the object.
bool isFrom(const char* object) {
  Dl_info found;
  return ::dladdr(::dlsym(RTLD_DEFAULT, "malloc"), &found) != 0 && std::strstr(found.dli_fname, object) != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (!isFrom(argv[1])) {
    std::printf("malloc is not that of %s\n", argv[1]);
    return 2;
  }
  const unsigned long count = std::stoul(argv[2]);
  const bool worker = argc > 3 && std::string(argv[3]) == "worker";
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back([i] { allocate(1000 + i, 0, false); });
  for (const size_t workers : {1, 2}) {
    sylar::IOManager iom({.threads = workers,
                          .use_caller = false,
                          .name = "allocator",
                          .identity = worker ? sylar::FiberIdentity::kWorker : sylar::FiberIdentity::kOwn});
    for (unsigned i = 0; i < kFibers; ++i) iom.schedule([=] { allocate(i + 1, count, true); });
    iom.stop();
  }
  g_end = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%lu blocks, %lu damaged\n", g_blocks.load(), g_damaged.load());
  return g_damaged == 0 ? 0 : 1;
}
