// Certificates for tests of ends that check them.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sylar::test {

/// A certificate in a file, which has signed itself.
class Certificate {
 public:
  /// Makes one for `host`, with its key.
  explicit Certificate(const std::string& host = "server.test") { makeFor(host); }
  /// Gets the one of a server on this machine. `options` say how the server is asked for TLS.
  Certificate(int port, const std::string& options) {
    run("{ openssl s_client -connect 127.0.0.1:" + std::to_string(port) + ' ' + options + " </dev/null | openssl x509 -out " +
        path() + "; }");
  }
  ~Certificate() { std::filesystem::remove_all(m_folder); }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  /// Puts another one in its place.
  void makeFor(const std::string& host) {
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=" + host + " -keyout " + key() +
        " -out " + path());
  }

  std::string path() const { return m_folder + "/certificate"; }
  std::string key() const { return m_folder + "/key"; }

 private:
  static std::string newFolder() {
    std::string path = std::filesystem::temp_directory_path() / "sylar_certificate_XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    return path;
  }
  void run(const std::string& command) { ASSERT_EQ(std::system((command + " 2>" + m_folder + "/log").c_str()), 0) << command; }

  const std::string m_folder = newFolder();
};

}  // namespace sylar::test
