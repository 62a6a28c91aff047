// Internal. A file with the process id of the service, which also keeps a second one from starting.
#pragma once

#include <string>

#include "sylar/base/internal.h"

namespace sylar::detail {

class PidFile {
 public:
  PidFile() = default;
  /// Locks `path` and writes the process id into it. Throws std::runtime_error, which says what would be right, if another
  /// process holds the file, if it cannot be written, or if it is no pid file (a link, not a regular file, or with something else
  /// in it than a number). Then the file stays as it is. Source: flock(2).
  explicit PidFile(const std::string& path) : PidFile(path, -1) {}
  /// The same for a process that is to replace another one: `locked` is that one's descriptor of the file, or -1. It is taken over,
  /// and if it is still the file at the path, nothing is written before takeOver().
  PidFile(const std::string& path, int locked);
  /// Removes the file if it is still the one at the path and has the number of this process.
  ~PidFile();
  /// Writes the process id.
  void takeOver();
  /// Returns the descriptor that holds the lock.
  int fd() const { return m_fd; }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  bool write() const;

  std::string m_path;
  int m_fd = -1;  // holds the lock
};

}  // namespace sylar::detail
