// For tests: what the kernel says that a thread does.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>

#include <fstream>
#include <string>

namespace sylar::test {

/// Returns the state of a thread of this process (proc(5)): 'R' wants a processor, 'S' sleeps, and '?' means that there is no such
/// thread.
inline char stateOfThread(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);  // fails, and does not throw, for a thread that ends between the open and the read
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '?' : line[name_end + 2];
}

/// Returns false also for a thread that has ended, and for one that waits for a lock, as those of a sanitizer.
inline bool sleepsInCall(pid_t thread) {
  std::ifstream in_call("/proc/self/task/" + std::to_string(thread) + "/syscall");
  long number = -1;
  return stateOfThread(thread) == 'S' && in_call >> number && number >= 0 && number != SYS_futex;
}

}  // namespace sylar::test
