// Internal. The texts of a directory of settings.
//
// Thread safety: all. May suspend: no, but the disk may block the thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sylar/config/config_error.h"

namespace sylar {

struct ConfFile {
  std::string path;
  std::string text;
};

struct ConfDirLimits {
  static constexpr size_t kFiles = 1000;
  static constexpr size_t kDirectories = 1000;
  static constexpr size_t kBytes = 16 << 20;  // of all files
};

/// All files *.yml and *.yaml below `directory`, in the order of their paths. Links are followed, but no directory is entered
/// twice; names that begin with a dot are passed over: there, Kubernetes keeps the versions of what its links show. What cannot
/// be read, or is no file, is added to `errors`.
std::vector<ConfFile> readConfDir(const std::string& directory, std::vector<ConfigError>& errors);

}  // namespace sylar
