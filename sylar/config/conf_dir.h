// Internal. Reads the files of a directory of settings.
//
// Thread safety: all calls from any thread. May suspend: no, but the disk may block the thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sylar/base/internal.h"
#include "sylar/config/config_error.h"

namespace sylar::detail {

struct ConfFile {
  std::string path;
  std::string text;
};

struct ConfDirLimits {
  static constexpr size_t kFiles = 1000;
  static constexpr size_t kDirectories = 1000;
  static constexpr size_t kBytes = 16 << 20;  // of all files together
};

/// Returns all files *.yml and *.yaml below `directory`, in the order of their paths. Links are followed, but no directory is
/// entered twice. Names that begin with a dot are skipped, because Kubernetes keeps the versions that its links lead to under
/// such names. Adds an error to `errors` for each path that cannot be read or is no regular file.
std::vector<ConfFile> readConfDir(const std::string& directory, std::vector<ConfigError>& errors);

}  // namespace sylar::detail
