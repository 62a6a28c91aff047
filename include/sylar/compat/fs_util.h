// Files and directories by path, with sylar's interface. A function that fails returns false and sets errno.
//
// Thread safety: all functions from any thread. May suspend: no, but the disk may block the thread.
#pragma once

#include <fstream>
#include <ios>
#include <string>
#include <vector>

#include "sylar/api.h"

namespace sylar {

class SYLAR_API FSUtil {
 public:
  /// Adds the regular files below `path` whose names end with `suffix`, in the order of their paths. Links are not followed, and
  /// entries that cannot be read are skipped.
  static void ListAllFile(std::vector<std::string>& files, const std::string& path, const std::string& suffix);
  /// Makes the directory and those above it. Returns true if it exists in the end.
  static bool Mkdir(const std::string& path);
  /// Returns true if the file contains the id of a process that exists.
  static bool IsRunningPidfile(const std::string& path);
  /// Removes a file, a link, or a directory with everything in it. Returns true if nothing of that name exists in the end.
  static bool Rm(const std::string& path);
  /// Moves `from` to `to` and replaces what is there. Source: rename(2).
  static bool Mv(const std::string& from, const std::string& to);
  /// Sets `real_path` to the absolute path without links. Source: realpath(3).
  static bool Realpath(const std::string& path, std::string& real_path);
  /// Makes `to` a link to `from` and replaces what is there.
  static bool Symlink(const std::string& from, const std::string& to);
  /// Removes a name. Returns true if it does not exist in the end; with `exist`, it must have existed. Source: unlink(2).
  static bool Unlink(const std::string& path, bool exist = false);
  /// Returns the directory of a path: "a/b" for "a/b/c", "." for "a", "/" for "/a".
  static std::string Dirname(const std::string& path);
  /// Returns the last part of a path, such as "c" for "a/b/c".
  static std::string Basename(const std::string& path);
  static bool OpenForRead(std::ifstream& stream, const std::string& path, std::ios_base::openmode mode);
  /// Opens a file for writing, and makes the directories of `path` as needed.
  static bool OpenForWrite(std::ofstream& stream, const std::string& path, std::ios_base::openmode mode);
};

}  // namespace sylar
