// The program's arguments and paths, with sylar's interface.
//
//   sylar::EnvMgr::GetInstance()->addHelp("p", "port");
//   if (!sylar::EnvMgr::GetInstance()->init(argc, argv)) return sylar::EnvMgr::GetInstance()->printHelp(), 1;
//   const std::string port = sylar::EnvMgr::GetInstance()->get("p", "8080");
//
// Arguments are `-key` or `-key value`; a value does not begin with '-'. Relative paths start at the directory of the
// executable, not at the one where the program was started.
//
// Thread safety: all calls from any thread. May suspend: no. Source: sylar.
#pragma once

#include <memory>
#include <string>

#include "sylar/api.h"

namespace sylar {

/// The program's arguments, paths and environment.
class SYLAR_API Env {
 public:
  Env();
  ~Env();

  /// Reads the arguments. Returns false, with an error in the log that names the argument, if one is neither `-key` nor `-key
  /// value`; those before it are kept. A key that comes twice has its last value.
  bool init(int argc, char** argv);

  void add(const std::string& key, const std::string& value);
  bool has(const std::string& key) const;
  void del(const std::string& key);
  /// Returns the value of `key`, "" if it came without one, or `default_value` if it did not come.
  std::string get(const std::string& key, const std::string& default_value = "") const;

  /// Adds a line about `key` to printHelp(); several calls make several lines.
  void addHelp(const std::string& key, const std::string& description);
  void removeHelp(const std::string& key);
  /// Writes the usage to standard output.
  void printHelp() const;

  /// Returns the path of the executable.
  std::string getExe() const;
  /// Returns the directory of the executable, with a '/' at its end. The name is sylar's. Source: sylar.
  std::string getCwd() const;

  /// Changes the environment by setenv(3), and returns false if the name is empty or contains a '='. While one thread calls
  /// setEnv() or getEnv(), other threads of the process must not use the environment in any other way.
  bool setEnv(const std::string& key, const std::string& value);
  /// Returns the value by getenv(3), or `default_value` if there is none.
  std::string getEnv(const std::string& key, const std::string& default_value = "") const;

  /// Returns `path` if it is absolute, otherwise `path` below getCwd(); "/" for the empty path. Source: sylar.
  std::string getAbsolutePath(const std::string& path) const;
  /// Returns `path` if it is absolute, otherwise `path` below the setting server.work_path. That setting is itself below
  /// getCwd() if it is relative or not set.
  std::string getAbsoluteWorkPath(const std::string& path) const;
  /// Returns where the settings are: the absolute path of argument `-c`, or of "conf" without that argument.
  std::string getConfigPath() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> m_impl;
};

/// Hands out the one Env of the process, which is never destroyed. Source: sylar.
struct SYLAR_API EnvMgr {
  static Env* GetInstance();
};

}  // namespace sylar
