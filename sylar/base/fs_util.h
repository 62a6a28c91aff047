// Files and directories by path, with sylar's interface. What fails says so by false, and errno says why.
//
// Thread safety: all, from any thread. May suspend: no; the disk may block the thread.
#pragma once

#include <fstream>
#include <ios>
#include <string>
#include <vector>

namespace sylar {

class FSUtil {
 public:
  /// Adds the regular files below `path` whose names end with `suffix`, in the order of their paths. Links are not followed; what
  /// cannot be read is passed over.
  static void ListAllFile(std::vector<std::string>& files, const std::string& path, const std::string& suffix);
  /// Makes the directory and those above it; true if it exists in the end.
  static bool Mkdir(const std::string& path);
  /// True if the file holds the id of a process that exists.
  static bool IsRunningPidfile(const std::string& path);
  /// Removes a file, a link, or a directory with all in it; true if there is nothing of that name in the end.
  static bool Rm(const std::string& path);
  /// Moves `from` to `to`, in place of what is there. Source: rename(2).
  static bool Mv(const std::string& from, const std::string& to);
  /// The absolute path without links. Source: realpath(3).
  static bool Realpath(const std::string& path, std::string& real_path);
  /// Makes `to` a link to `from`, in place of what is there.
  static bool Symlink(const std::string& from, const std::string& to);
  /// Removes a name; true if there is none in the end. With `exist`, it must have been there. Source: unlink(2).
  static bool Unlink(const std::string& path, bool exist = false);
  /// "a/b" of "a/b/c", "." of "a", "/" of "/a".
  static std::string Dirname(const std::string& path);
  /// "c" of "a/b/c".
  static std::string Basename(const std::string& path);
  static bool OpenForRead(std::ifstream& stream, const std::string& path, std::ios_base::openmode mode);
  /// Makes the directories of `path` as needed.
  static bool OpenForWrite(std::ofstream& stream, const std::string& path, std::ios_base::openmode mode);
};

}  // namespace sylar
