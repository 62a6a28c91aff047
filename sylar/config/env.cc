#include "sylar/env.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "sylar/base/log.h"
#include "sylar/base/os_mutex.h"
#include "sylar/config.h"

namespace sylar {
namespace {

/// Returns the path of the program. It is read once, because the kernel reports another name after the file is replaced.
const std::string& executable() {
  static const auto* const path = [] {
    std::error_code error;
    return new std::string(std::filesystem::read_symlink("/proc/self/exe", error));
  }();
  return *path;
}

}  // namespace

struct Env::Impl {
  OsMutex mutex;
  std::string program SYLAR_GUARDED_BY(mutex);
  std::map<std::string, std::string> arguments SYLAR_GUARDED_BY(mutex);
  std::vector<std::pair<std::string, std::string>> help SYLAR_GUARDED_BY(mutex);
};

Env::Env() : m_impl(std::make_unique<Impl>()) {}
Env::~Env() = default;

bool Env::init(int argc, char** argv) {
  const Lock lock(m_impl->mutex);
  m_impl->program = argc > 0 ? argv[0] : "";
  std::string* value = nullptr;  // of the key before, as long as it has none
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.size() > 1 && argument.starts_with('-')) {
      value = &m_impl->arguments[argument.substr(1)];
      value->clear();
    } else if (value != nullptr && argument != "-") {
      *value = argument;
      value = nullptr;
    } else {
      log::error("argument {}, '{}': expected -key or -key value", i, printable(argument));
      return false;
    }
  }
  return true;
}

void Env::add(const std::string& key, const std::string& value) {
  const Lock lock(m_impl->mutex);
  m_impl->arguments[key] = value;
}

bool Env::has(const std::string& key) const {
  const Lock lock(m_impl->mutex);
  return m_impl->arguments.contains(key);
}

void Env::del(const std::string& key) {
  const Lock lock(m_impl->mutex);
  m_impl->arguments.erase(key);
}

std::string Env::get(const std::string& key, const std::string& default_value) const {
  const Lock lock(m_impl->mutex);
  const auto found = m_impl->arguments.find(key);
  return found == m_impl->arguments.end() ? default_value : found->second;
}

void Env::addHelp(const std::string& key, const std::string& description) {
  const Lock lock(m_impl->mutex);
  m_impl->help.emplace_back(key, description);
}

void Env::removeHelp(const std::string& key) {
  const Lock lock(m_impl->mutex);
  std::erase_if(m_impl->help, [&key](const auto& line) { return line.first == key; });
}

void Env::printHelp() const {
  const Lock lock(m_impl->mutex);
  std::printf("Usage: %s [options]\n", m_impl->program.c_str());
  for (const auto& [key, description] : m_impl->help) std::printf("  -%s : %s\n", key.c_str(), description.c_str());
  std::fflush(stdout);
}

std::string Env::getExe() const { return executable(); }

std::string Env::getCwd() const { return executable().substr(0, executable().find_last_of('/') + 1); }

bool Env::setEnv(const std::string& key, const std::string& value) {
  const Lock lock(m_impl->mutex);
  return ::setenv(key.c_str(), value.c_str(), 1) == 0;
}

std::string Env::getEnv(const std::string& key, const std::string& default_value) const {
  const Lock lock(m_impl->mutex);
  const char* const value = std::getenv(key.c_str());
  return value == nullptr ? default_value : value;
}

std::string Env::getAbsolutePath(const std::string& path) const {
  if (path.empty()) return "/";
  return path.starts_with('/') ? path : getCwd() + path;
}

std::string Env::getAbsoluteWorkPath(const std::string& path) const {
  if (path.empty()) return "/";
  if (path.starts_with('/')) return path;
  const ConfigVarBase::ptr setting = Config::LookupBase("server.work_path");
  const std::string below = setting == nullptr ? "" : setting->toString();
  return below.empty() ? getCwd() + path : getAbsolutePath(below) + '/' + path;
}

std::string Env::getConfigPath() const { return getAbsolutePath(get("c", "conf")); }

Env* EnvMgr::GetInstance() {
  static Env* const env = new Env;
  return env;
}

}  // namespace sylar
