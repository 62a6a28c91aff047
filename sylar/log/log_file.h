// Internal. The destination of log lines: stdout, or a file that may be rotated by size and that others may move or delete.
//
// Its system calls bypass the hooks, and its descriptor is the library's own, so a program that closes every descriptor does not
// close it. There is no buffer, so written text is in the kernel and a forked child inherits no half-written line.
//
// Thread safety: none; an object belongs to one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sylar/base/fd.h"
#include "sylar/base/internal.h"
#include "sylar/log/log_define.h"

namespace sylar::detail {

class LogFile {
 public:
  /// Makes a file that is not open yet; an empty path stands for stdout.
  explicit LogFile(std::string path) : m_path(std::move(path)) {}

  /// Returns `path` as an absolute path, or `path` itself if the working directory is gone, in which case opening it fails.
  static std::string absolute(const std::string& path);
  /// Returns 0, or the -errno with which opening `path` would fail, as far as that can be told without making anything.
  static int mayOpen(const std::string& path);

  /// Opens the file again and makes missing directories. Returns 0, or -errno and leaves the old file open.
  int reopen();
  /// Opens the file if it is not open, or if the path now leads to another file. Returns 0, or -errno and leaves the old file
  /// open.
  int ensure();
  bool isOpen() const { return isStdout() || m_fd.valid(); }
  void setRotation(LogRotation rotation) { m_rotation = rotation; }
  /// Returns how many bytes may be written at once so that files stay within the rotation's size.
  size_t room() const;
  /// Moves the file away if `more` bytes would make it too large. Returns 0, or -errno and then the file keeps growing.
  int rotateFor(size_t more);
  struct Written {
    size_t bytes;
    int error;  ///< 0 if all was written, else -errno
  };
  /// Writes `text` and blocks until the device has taken it. If a write ended within a line, the next one begins with a newline,
  /// so that lines do not mix.
  Written write(std::string_view text);

 private:
  Written put(std::string_view text);
  bool isStdout() const { return m_path.empty(); }
  bool wasMoved() const;

  const std::string m_path;
  LogRotation m_rotation;
  UniqueFd m_fd;
  dev_t m_device = 0;
  ino_t m_inode = 0;
  uint64_t m_size = 0;
  bool m_torn = false;  // the last write ended within a line
};

}  // namespace sylar::detail
