// Calls that wait until data is on the disk. A helper thread makes them if setHookFiles() says so. Source: fsync(2), sync(2), msync(2), sync_file_range(2).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sylar/hook/lock_wait.h"
#include "sylar/hook/offload.h"
#include "sylar/hook/real.h"

namespace sylar::detail {

namespace {

constinit std::atomic<bool> g_hook_files{true};

}  // namespace

bool filesSuspend() { return g_hook_files.load(std::memory_order_relaxed) && locksSuspend(); }

}  // namespace sylar::detail

namespace sylar {

void setHookFiles(bool on) { g_hook_files.store(on, std::memory_order_relaxed); }
bool hookFiles() { return g_hook_files.load(std::memory_order_relaxed); }

}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int fsync(int fd) {
  countCall(Hook::fsync);
  return offloadFileCall([=] { return real::fsync(fd); }, fd);
}
int fdatasync(int fd) {
  countCall(Hook::fdatasync);
  return offloadFileCall([=] { return real::fdatasync(fd); }, fd);
}
int syncfs(int fd) noexcept {
  countCall(Hook::syncfs);
  return offloadFileCall([=] { return real::syncfs(fd); }, fd);
}
void sync() noexcept {
  countCall(Hook::sync);
  offloadFileCall([] { return real::sync(), 0; });
}
int msync(void* memory, size_t size, int flags) {
  countCall(Hook::msync);
  return offloadFileCall([=] { return real::msync(memory, size, flags); });
}
int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
  countCall(Hook::sync_file_range);
  return offloadFileCall([=] { return real::sync_file_range(fd, offset, size, flags); }, fd);
}

}  // extern "C"
