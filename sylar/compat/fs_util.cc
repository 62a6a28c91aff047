#include "sylar/compat/fs_util.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

namespace sylar {
namespace {

namespace fs = std::filesystem;

bool tell(const std::error_code& error) {
  if (error) errno = error.value();
  return !error;
}

}  // namespace

void FSUtil::ListAllFile(std::vector<std::string>& files, const std::string& path, const std::string& suffix) {
  const auto first = static_cast<ptrdiff_t>(files.size());
  std::error_code error;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    const bool regular = entry->symlink_status(ignored).type() == fs::file_type::regular;
    if (regular && entry->path().string().ends_with(suffix)) files.push_back(entry->path());
  }
  std::sort(files.begin() + first, files.end());
}

bool FSUtil::Mkdir(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return tell(error);
}

bool FSUtil::IsRunningPidfile(const std::string& path) {
  std::ifstream stream(path);
  pid_t pid = 0;
  if (!(stream >> pid) || pid <= 0) return false;
  return ::kill(pid, 0) == 0 || errno == EPERM;
}

bool FSUtil::Rm(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return tell(error);
}

bool FSUtil::Mv(const std::string& from, const std::string& to) { return std::rename(from.c_str(), to.c_str()) == 0; }

bool FSUtil::Realpath(const std::string& path, std::string& real_path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real != nullptr) real_path = real.get();
  return real != nullptr;
}

bool FSUtil::Symlink(const std::string& from, const std::string& to) {
  return Unlink(to) && ::symlink(from.c_str(), to.c_str()) == 0;
}

bool FSUtil::Unlink(const std::string& path, bool exist) { return ::unlink(path.c_str()) == 0 || (!exist && errno == ENOENT); }

std::string FSUtil::Dirname(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string FSUtil::Basename(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool FSUtil::OpenForRead(std::ifstream& stream, const std::string& path, std::ios_base::openmode mode) {
  stream.open(path, mode);
  return stream.is_open();
}

bool FSUtil::OpenForWrite(std::ofstream& stream, const std::string& path, std::ios_base::openmode mode) {
  if (!Mkdir(Dirname(path))) return false;
  stream.open(path, mode);
  return stream.is_open();
}

}  // namespace sylar
