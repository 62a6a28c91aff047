// Internal. A file that tells which process is the service, and that keeps a second one from starting.
#pragma once

#include <string>

namespace sylar {

class PidFile {
 public:
  PidFile() = default;
  /// Locks `path` and writes the process id into it. Throws std::runtime_error with what would be right: another process holds
  /// it, or it cannot be written. Source: flock(2).
  explicit PidFile(const std::string& path);
  /// Removes the file.
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  std::string m_path;
  int m_fd = -1;  // holds the lock
};

}  // namespace sylar
