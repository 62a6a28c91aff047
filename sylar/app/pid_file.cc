#include "sylar/app/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace sylar {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(fmt::format("server.pid_file: '{}': {}", path, what));
}

/// Does `path` lead to the open file `fd`?
bool isAt(int fd, const std::string& path) {
  struct stat mine {
  }, there{};
  return ::fstat(fd, &mine) == 0 && ::stat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

std::string reason(int error) { return std::system_category().message(error); }

}  // namespace

PidFile::PidFile(const std::string& path) : m_path(path) {
  do {  // until what is locked is what stands there: the service before may have removed it in between
    if (m_fd >= 0) ::close(m_fd);
    m_fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (m_fd < 0) fail(path, reason(errno) + "; must be a file that this user may write");
    if (::flock(m_fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(m_fd);
      fail(path,
           error == EWOULDBLOCK ? "a running service holds it; end that one, or give this one a file of its own" : reason(error));
    }
  } while (!isAt(m_fd, path));
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(m_fd, 0) == 0 && ::pwrite(m_fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) return;
  const int error = errno;
  ::close(m_fd);
  fail(path, reason(error));
}

PidFile::~PidFile() {
  if (m_fd < 0) return;
  ::unlink(m_path.c_str());
  ::close(m_fd);
}

}  // namespace sylar
