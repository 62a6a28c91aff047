// Paths of what a test runs or reads. Definitions give them from the folder of the programs, so that all clones have the same
// objects.
#pragma once

#include <filesystem>
#include <string>

namespace sylar::test {

/// Returns the absolute path of `path`, which starts in the folder of this program.
inline std::string besideProgram(const std::string& path) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / path).string();
}

}  // namespace sylar::test
