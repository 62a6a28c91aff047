// Calls that wait until data is on the disk. The ring or a helper thread makes them if setHookFiles() says so. Source: fsync(2),
// sync(2), msync(2), sync_file_range(2).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "sylar/hook/core/real.h"
#include "sylar/hook/core/ring_call.h"
#include "sylar/hook/lock/lock_wait.h"

namespace sylar::detail {

namespace {

constinit std::atomic<bool> g_hook_files{true};

template <class Plain>
int syncFile(int fd, unsigned flags, Plain plain) {
  const auto prepare = [=](io_uring_sqe* to) {
    io_uring_prep_fsync(to, fd, flags);
    beginElsewhere(to);
  };
  return fileCall(prepare, plain, fd);
}

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
  return syncFile(fd, 0, [=] { return real::fsync(fd); });
}
int fdatasync(int fd) {
  countCall(Hook::fdatasync);
  return syncFile(fd, IORING_FSYNC_DATASYNC, [=] { return real::fdatasync(fd); });
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
  const auto call = [=] { return real::sync_file_range(fd, offset, size, flags); };
  if (size < 0 || size > UINT32_MAX) return offloadFileCall(call, fd);  // the ring has no room for that size
  const auto prepare = [=](io_uring_sqe* to) {
    io_uring_prep_sync_file_range(to, fd, static_cast<unsigned>(size), static_cast<uint64_t>(offset), static_cast<int>(flags));
    beginElsewhere(to);
  };
  return fileCall(prepare, call, fd);
}

}  // extern "C"
