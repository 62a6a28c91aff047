// To be preloaded: counts a server's allocations without changing it. The count is a 64-bit integer in the file that
// BENCH_MALLOC_COUNT names, so that a driver can read it at both ends of a window.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

std::atomic<uint64_t> g_before;
std::atomic<uint64_t>* g_count = &g_before;

[[gnu::constructor]] void openCount() {
  const char* path = std::getenv("BENCH_MALLOC_COUNT");
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* memory = mmap(nullptr, sizeof *g_count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory != MAP_FAILED) g_count = static_cast<std::atomic<uint64_t>*>(memory);
}

void count() { g_count->fetch_add(1, std::memory_order_relaxed); }

}  // namespace

extern "C" {

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void* calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}

void* realloc(void* old, size_t size) {
  count();
  return __libc_realloc(old, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;  // ENOMEM
}

}  // extern "C"
