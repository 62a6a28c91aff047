// The program's arguments and paths, with sylar's interface.
//
//   sylar::EnvMgr::GetInstance()->addHelp("p", "port");
//   if (!sylar::EnvMgr::GetInstance()->init(argc, argv)) return sylar::EnvMgr::GetInstance()->printHelp(), 1;
//   const std::string port = sylar::EnvMgr::GetInstance()->get("p", "8080");
//
// Arguments are `-key` or `-key value`; a value does not begin with '-'. Relative paths are taken from the directory of the
// executable, not from the one where the program was started.
//
// Thread safety: all. May suspend: no. Source: sylar.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/base/singleton.h"

namespace sylar {

class Env {
 public:
  /// Reads the arguments. False, with an error in the log that names it, if one is not of that form; those before it are kept.
  /// A key that comes twice has its last value.
  bool init(int argc, char** argv);

  void add(const std::string& key, const std::string& value);
  bool has(const std::string& key) const;
  void del(const std::string& key);
  /// The value of `key`; "" if it came without one; `default_value` if it did not come.
  std::string get(const std::string& key, const std::string& default_value = "") const;

  /// What printHelp says of `key`; several calls make several lines.
  void addHelp(const std::string& key, const std::string& description);
  void removeHelp(const std::string& key);
  /// Writes the usage to standard output.
  void printHelp() const;

  /// Path of the executable.
  std::string getExe() const;
  /// Directory of the executable, with a '/' at its end. Source: sylar, whose name for it this is.
  std::string getCwd() const;

  /// The environment: setenv(3), getenv(3). setEnv is false if the name is empty or has a '='. Other threads of the process must
  /// not use the environment past these two meanwhile.
  bool setEnv(const std::string& key, const std::string& value);
  std::string getEnv(const std::string& key, const std::string& default_value = "") const;

  /// `path` if it is absolute, else below getCwd(); "/" for the empty path. Source: sylar.
  std::string getAbsolutePath(const std::string& path) const;
  /// `path` if it is absolute, else below the setting server.work_path, which is itself below getCwd() if it is relative or not
  /// set.
  std::string getAbsoluteWorkPath(const std::string& path) const;
  /// Where the settings are: the absolute path of argument `-c`, of "conf" without it.
  std::string getConfigPath() const;

 private:
  mutable OsMutex m_mutex;
  std::string m_program SYLAR_GUARDED_BY(m_mutex);
  std::map<std::string, std::string> m_arguments SYLAR_GUARDED_BY(m_mutex);
  std::vector<std::pair<std::string, std::string>> m_help SYLAR_GUARDED_BY(m_mutex);
};

using EnvMgr = Singleton<Env>;

}  // namespace sylar
