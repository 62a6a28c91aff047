#include "sylar/net/unix_path.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sylar::detail {
namespace {

/// A lock that one process holds at a time. The holder removes the file with the lock, so a process that has got the lock must
/// check that its file is still the one at the path.
class LockFile {
 public:
  explicit LockFile(std::string path) : m_path(std::move(path)) {
    do {
      if (m_fd >= 0) ::close(m_fd);
      m_fd = ::open(m_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
      m_held = m_fd >= 0 && ::flock(m_fd, LOCK_EX | LOCK_NB) == 0;
    } while (m_held && !isAtPath());
    m_held = m_held && isOurs();
  }
  ~LockFile() {
    if (m_held) ::unlink(m_path.c_str());
    if (m_fd >= 0) ::close(m_fd);
  }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  bool isHeld() const { return m_held; }

 private:
  /// Returns true if the file is regular and empty. If another program keeps something in a file of this name, the file belongs
  /// to that program.
  bool isOurs() const {
    struct stat mine;
    return ::fstat(m_fd, &mine) == 0 && S_ISREG(mine.st_mode) && mine.st_size == 0;
  }
  bool isAtPath() const {
    struct stat mine, there;
    return ::fstat(m_fd, &mine) == 0 && ::lstat(m_path.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
  }

  const std::string m_path;
  int m_fd = -1;
  bool m_held = false;
};

/// Returns true if the socket file at the path of `address` belongs to no socket. A datagram socket can connect to one of its own
/// type, and every other type refuses it with EPROTOTYPE, even if it does not listen yet. If there is no socket, the error is
/// ECONNREFUSED.
bool isDead(const UnixAddress& address) {
  struct stat status;
  if (::lstat(address.getPath().c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int probe = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const bool dead = ::connect(probe, address.getAddr(), address.getAddrLen()) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  return dead;
}

}  // namespace

int bindUnix(int fd, const UnixAddress& address) {
  if (::bind(fd, address.getAddr(), address.getAddrLen()) == 0) return 0;
  if (errno != EADDRINUSE || address.isAbstract()) return -1;
  const LockFile lock(address.getPath() + ".lock");
  if (lock.isHeld() && isDead(address) && ::unlink(address.getPath().c_str()) == 0) {
    return ::bind(fd, address.getAddr(), address.getAddrLen());
  }
  errno = EADDRINUSE;
  return -1;
}

std::unique_ptr<SocketFile> SocketFile::of(const UnixAddress& address) {
  struct stat status;
  const std::string path = address.getPath();
  if (path.empty() || address.isAbstract() || ::lstat(path.c_str(), &status) != 0) return nullptr;
  return std::unique_ptr<SocketFile>(new SocketFile(path, status.st_dev, status.st_ino));
}

SocketFile::SocketFile(std::string path, dev_t device, ino_t inode)
    : m_path(std::move(path)), m_device(device), m_inode(inode), m_process(::getpid()) {}

SocketFile::~SocketFile() {
  struct stat there;
  if (m_process != ::getpid() || ::lstat(m_path.c_str(), &there) != 0) return;
  if (there.st_dev == m_device && there.st_ino == m_inode) ::unlink(m_path.c_str());
}

}  // namespace sylar::detail
