#include "sylar/config/conf_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "sylar/config/yaml_limits.h"
#include "sylar/config/yaml_reader.h"

namespace sylar::detail {
namespace {

namespace fs = std::filesystem;

/// Opens and closes through libc, so that the hooks see both if they are linked.
struct File {
  explicit File(const fs::path& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const int fd;
};

class Reader {
 public:
  explicit Reader(std::vector<ConfigError>& errors) : m_errors(errors) {}

  void list(const fs::path& directory) {
    std::error_code error;
    const fs::path real = fs::canonical(directory, error);
    fs::directory_iterator entries;
    if (!error) entries = fs::directory_iterator(real, error);
    if (error) return fail(directory, "cannot read the directory: " + error.message());
    if (!m_entered.insert(real).second) return;
    if (m_entered.size() > ConfDirLimits::kDirectories) {
      return fail(directory, fmt::format("the limit is {} directories", ConfDirLimits::kDirectories));
    }
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      if (error) return fail(directory, "cannot read the directory: " + error.message());
      const std::string name = entries->path().filename();
      if (name.starts_with('.')) continue;
      std::error_code ignored;  // a dangling link is no directory
      if (entries->is_directory(ignored)) {
        list(directory / name);
      } else if (name.ends_with(".yml") || name.ends_with(".yaml")) {
        m_paths.push_back(directory / name);
      }
    }
  }

  std::vector<ConfFile> read() {
    std::sort(m_paths.begin(), m_paths.end());
    if (m_paths.size() > ConfDirLimits::kFiles) {
      fail(m_paths[ConfDirLimits::kFiles], fmt::format("the limit is {} files", ConfDirLimits::kFiles));
      return {};
    }
    std::vector<ConfFile> files;
    size_t bytes = 0;
    for (const fs::path& path : m_paths) {
      ConfFile file{path, {}};
      if (!readFile(path, file.text)) continue;
      bytes += file.text.size();
      if (bytes > ConfDirLimits::kBytes) {
        fail(path, fmt::format("the limit is {} bytes in all files", ConfDirLimits::kBytes));
        return files;
      }
      files.push_back(std::move(file));
    }
    return files;
  }

 private:
  void fail(const fs::path& path, std::string reason) { m_errors.push_back({path, 0, "", "", std::move(reason)}); }

  bool readFile(const fs::path& path, std::string& text) {
    const File file(path);  // opening a FIFO does not block
    struct stat status {};
    if (file.fd < 0 || ::fstat(file.fd, &status) != 0) {
      fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
      return false;
    }
    if (!S_ISREG(status.st_mode)) {
      fail(path, "is no regular file");
      return false;
    }
    char buffer[16384];
    ssize_t n;
    while ((n = ::read(file.fd, buffer, sizeof buffer)) > 0 && text.size() <= YamlLimits::kBytes) {
      text.append(buffer, static_cast<size_t>(n));
    }
    if (n < 0) fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (text.size() > YamlLimits::kBytes) fail(path, fmt::format("the limit is {} bytes", YamlLimits::kBytes));
    return n >= 0 && text.size() <= YamlLimits::kBytes;
  }

  std::vector<ConfigError>& m_errors;
  std::vector<fs::path> m_paths;
  std::set<fs::path> m_entered;
};

}  // namespace

std::vector<ConfFile> readConfDir(const std::string& directory, std::vector<ConfigError>& errors) {
  Reader reader(errors);
  reader.list(directory);
  return reader.read();
}

}  // namespace sylar::detail
