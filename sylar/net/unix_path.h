// Internal. The file of a Unix socket: a process can take it over from one that has died, and it is removed with its socket.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "sylar/address.h"
#include "sylar/base/internal.h"

namespace sylar::detail {

/// Binds `fd`, a Unix socket, as bind(2) does. A socket file that belongs to no socket is replaced; if several processes try
/// that, one succeeds. Returns 0, or -1 with errno: EADDRINUSE (a socket is bound there, whether it listens yet or not, or
/// another process is just replacing a dead one, or it is another kind of file), EACCES, ... While it replaces a file it keeps a
/// lock file, whose name is the path followed by `.lock`. May suspend: no. Source: unix(7).
int bindUnix(int fd, const UnixAddress& address);

/// The file that bindUnix() has made. It is removed with this object, unless by then another file lies at the path, or this is
/// another process: a child of a fork leaves the file to its parent.
class SocketFile {
 public:
  /// Returns the file at the path of `address`, or null if the name is abstract or there is no file. Throws std::bad_alloc.
  static std::unique_ptr<SocketFile> of(const UnixAddress& address);
  ~SocketFile();
  /// Leaves the file where it is.
  void leave() { m_process = 0; }
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

 private:
  SocketFile(std::string path, dev_t device, ino_t inode);

  const std::string m_path;
  const dev_t m_device;
  const ino_t m_inode;
  pid_t m_process;  // that removes it
};

}  // namespace sylar::detail
