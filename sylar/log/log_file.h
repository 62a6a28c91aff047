// Internal. What lines are written to: a file that others may move or delete, and that may be rotated by size; or stdout.
//
// Its system calls go past the hooks, and its descriptor is the library's own, so a user who closes whatever there is does not
// close it. There is no buffer: what was written is with the kernel, and a forked child inherits nothing half done.
//
// Thread safety: belongs to one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sylar/base/fd.h"

namespace sylar {

struct LogRotation {
  uint64_t bytes = 0;  ///< a file that would become larger is moved to `file.1`, that to `file.2`, and so on; 0: never
  uint32_t keep = 5;   ///< so many old files stay, at least 1

  friend bool operator==(const LogRotation&, const LogRotation&) = default;
};

class LogFile {
 public:
  /// An empty path is stdout.
  explicit LogFile(std::string path) : m_path(std::move(path)) {}

  /// What a path means here and now; the path itself if the working directory is gone: then opening fails.
  static std::string absolute(const std::string& path);
  /// 0, or the -errno for which opening this path would fail by all that can be told without making anything.
  static int mayOpen(const std::string& path);

  /// Opens anew; makes missing directories. 0 or -errno, and then what was open stays so.
  int reopen();
  /// Opens, if it is not open, or if the path leads to another file by now. 0 or -errno, and then what was open stays so.
  int ensure();
  bool isOpen() const { return isStdout() || m_fd.valid(); }
  void setRotation(LogRotation rotation) { m_rotation = rotation; }
  /// How much may be written at once for files to stay within the rotation's size.
  size_t room() const;
  /// Moves the file away if `more` bytes would make it too large. 0 or -errno, and then it goes on growing.
  int rotateFor(size_t more);
  struct Written {
    size_t bytes;
    int error;  ///< 0: all of it; or -errno
  };
  /// Waits until the device takes it. After a part of a line the next text begins with a newline, so that it is not mixed up.
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
  bool m_torn = false;  // what was written last ends within a line
};

}  // namespace sylar
