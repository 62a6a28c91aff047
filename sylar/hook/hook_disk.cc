// Calls that wait until data is on the disk, made by a helper thread. Source: fsync(2), sync(2), msync(2), sync_file_range(2).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sylar/hook/offload.h"
#include "sylar/hook/real.h"

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

int fsync(int fd) {
  return offload([=] { return real::fsync(fd); });
}
int fdatasync(int fd) {
  return offload([=] { return real::fdatasync(fd); });
}
int syncfs(int fd) noexcept {
  return offload([=] { return real::syncfs(fd); });
}
void sync() noexcept {
  offload([] { return real::sync(), 0; });
}
int msync(void* memory, size_t size, int flags) {
  return offload([=] { return real::msync(memory, size, flags); });
}
int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
  return offload([=] { return real::sync_file_range(fd, offset, size, flags); });
}

}  // extern "C"
