#include "sylar/app/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "sylar/base/log.h"

namespace sylar::detail {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(fmt::format("server.pid_file: '{}': {}", path, what));
}

/// Returns true if `path` leads to the open file `fd`.
bool isAt(int fd, const std::string& path) {
  struct stat mine {
  }, there{};
  return ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

/// Returns true if `fd` is a regular file that is empty or contains only a number.
bool isPidFile(int fd) {
  struct stat status {};
  char text[32];
  const ssize_t size = ::pread(fd, text, sizeof text, 0);
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || size < 0 || size == sizeof text) return false;
  const std::string_view line(text, static_cast<size_t>(size));
  const std::string_view digits = line.substr(0, line.ends_with('\n') ? line.size() - 1 : line.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos && (line.empty() || !digits.empty());
}

std::string ownLine() { return fmt::format("{}\n", ::getpid()); }

std::string reason(int error) { return std::system_category().message(error); }

}  // namespace

PidFile::PidFile(const std::string& path, int locked) : m_path(path), m_fd(locked) {
  if (locked >= 0 && isAt(locked, path)) return;
  do {  // until the locked file is the one at the path, which the previous service may remove in between
    if (m_fd >= 0) ::close(m_fd);
    m_fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    if (m_fd < 0)
      fail(path,
           errno == ELOOP ? "is a link; must be the file itself" : reason(errno) + "; must be a file that this user may write");
    if (::flock(m_fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(m_fd);
      fail(path,
           error == EWOULDBLOCK ? "a running service holds it; end that one, or give this one a file of its own" : reason(error));
    }
  } while (!isAt(m_fd, path));
  if (!isPidFile(m_fd)) {
    ::close(m_fd);
    fail(path, "has something else in it, and stays as it is; must be empty, or have the process id of a service that has ended");
  }
  if (write()) return;
  const int error = errno;
  ::close(m_fd);
  fail(path, reason(error));
}

bool PidFile::write() const {
  const std::string text = ownLine();
  const auto size = static_cast<ssize_t>(text.size());
  return ::pwrite(m_fd, text.data(), text.size(), 0) == size &&
         ::ftruncate(m_fd, size) == 0;  // never empty, for those who read it
}

void PidFile::takeOver() {
  if (!write()) log::warn("server.pid_file: '{}': {}", m_path, reason(errno));
}

PidFile::~PidFile() {
  if (m_fd < 0) return;
  char text[32];
  const ssize_t size = ::pread(m_fd, text, sizeof text, 0);
  const bool own = size >= 0 && ownLine() == std::string_view(text, static_cast<size_t>(size));
  if (own && isAt(m_fd, m_path)) ::unlink(m_path.c_str());
  ::close(m_fd);
}

}  // namespace sylar::detail
