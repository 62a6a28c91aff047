#include "sylar/log/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>

#include "sylar/base/log.h"

namespace sylar::detail {
namespace {

// Non-blocking, so that opening a FIFO that nobody reads fails and does not wait.
constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK;

// Reports no error, because the open that follows does.
void makeDirectories(const std::string& path) {
  try {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  } catch (const std::bad_alloc&) {
    log::noMemory();
  }
}

int statOf(const std::filesystem::path& path, struct stat& is) { return ::stat(path.c_str(), &is) == 0 ? 0 : -errno; }

int mayAccess(const std::filesystem::path& path, int how) {
  return ::faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0 ? 0 : -errno;
}

int waitWritable(int fd) {
  pollfd one{fd, POLLOUT, 0};
  return static_cast<int>(sys::call(SYS_ppoll, &one, 1, nullptr, nullptr, 0));
}

}  // namespace

std::string LogFile::absolute(const std::string& path) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path.empty() ? "." : path, failed);
  return failed ? path : absolute.lexically_normal().string();
}

int LogFile::mayOpen(const std::string& path) {
  struct stat is {};
  int error = statOf(path, is);
  if (error == 0) return S_ISDIR(is.st_mode) ? -EISDIR : mayAccess(path, W_OK);
  // The file, and its missing directories, will be made in the nearest directory above that exists.
  std::filesystem::path above = path;
  while (error == -ENOENT && above.has_relative_path()) {
    above = above.parent_path();
    error = statOf(above, is);
  }
  if (error != 0) return error;
  return S_ISDIR(is.st_mode) ? mayAccess(above, W_OK | X_OK) : -ENOTDIR;
}

int LogFile::reopen() {
  if (isStdout()) return 0;
  makeDirectories(m_path);
  const long fd = sys::call(SYS_openat, AT_FDCWD, m_path.c_str(), kFlags, 0644);
  if (fd < 0) return static_cast<int>(fd);
  const int own = sys::keepOwn(fd);
  if (own < 0) return own;
  UniqueFd opened(own);
  struct stat is {};
  if (::fstat(opened.get(), &is) != 0) return -errno;
  m_torn = m_torn && is.st_dev == m_device && is.st_ino == m_inode;
  m_fd = std::move(opened);
  m_device = is.st_dev;
  m_inode = is.st_ino;
  m_size = static_cast<uint64_t>(is.st_size);
  return 0;
}

int LogFile::ensure() { return isOpen() && (isStdout() || !wasMoved()) ? 0 : reopen(); }

bool LogFile::wasMoved() const {
  struct stat is {};
  return ::stat(m_path.c_str(), &is) != 0 || is.st_dev != m_device || is.st_ino != m_inode;
}

LogFile::Written LogFile::write(std::string_view text) {
  if (m_torn) {
    if (const int error = put("\n").error; error != 0) return {0, error};
  }
  const Written written = put(text);
  m_torn = written.error != 0 && written.bytes != 0 && text[written.bytes - 1] != '\n';
  return written;
}

LogFile::Written LogFile::put(std::string_view text) {
  const int fd = isStdout() ? STDOUT_FILENO : m_fd.get();
  size_t bytes = 0;
  while (bytes < text.size()) {
    const long written = sys::writeFd(fd, text.data() + bytes, text.size() - bytes);
    if (written == -EAGAIN) {
      if (const int error = waitWritable(fd); error < 0 && error != -EINTR) return {bytes, error};
    } else if (written < 0 && written != -EINTR) {
      return {bytes, static_cast<int>(written)};
    } else if (written > 0) {
      bytes += static_cast<size_t>(written);
      m_size += static_cast<uint64_t>(written);
    }
  }
  return {bytes, 0};
}

size_t LogFile::room() const {
  if (m_rotation.bytes == 0) return SIZE_MAX;
  return m_size < m_rotation.bytes ? m_rotation.bytes - m_size : m_rotation.bytes;
}

int LogFile::rotateFor(size_t more) {
  if (m_rotation.bytes == 0 || m_size == 0 || m_size + more <= m_rotation.bytes || wasMoved()) return 0;
  const auto old = [this](uint32_t number) { return m_path + "." + std::to_string(number); };
  for (uint32_t number = std::max(m_rotation.keep, 1u); number > 1; --number) {
    ::rename(old(number - 1).c_str(), old(number).c_str());  // some may not exist yet
  }
  return ::rename(m_path.c_str(), old(1).c_str()) == 0 ? 0 : -errno;
}

}  // namespace sylar::detail
