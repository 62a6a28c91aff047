// Internal. The servers of a service, as the setting `servers` has them.
//
// Thread safety: calls that are const from any thread after make(); the others from one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sylar/app/worker_groups.h"
#include "sylar/application.h"
#include "sylar/base/internal.h"
#include "sylar/config.h"
#include "sylar/socket.h"
#include "sylar/tcp_server.h"

namespace sylar::detail {

class Servers {
 public:
  /// Knows the type `http`.
  Servers();
  void addType(const std::string& type, Application::ServerMaker make) { m_types[type] = std::move(make); }

  /// Returns the mistakes in the settings `servers` and `workers` that neither can see alone.
  std::vector<ConfigError> check(const ConfigPreview& next) const;
  /// Makes the servers and binds their addresses. Throws std::runtime_error with all failures.
  void make(const WorkerGroups& workers);
  /// Reads certificates and keys again. One that cannot be used stays as it is, and a line says why. One caller at a time.
  void reloadTls();
  /// Warns of settings that are valid but serve nobody.
  void warnOfNothing(const std::string& config_dir) const;

  /// A server, and the type that its setting names.
  struct Served {
    std::string type;
    TcpServer::ptr server;
    std::function<void()> reload_tls;  // null if it speaks none
  };
  const std::vector<Served>& all() const { return m_served; }
  std::vector<Socket::ptr> listeners() const;
  void clear() { m_served.clear(); }

 private:
  std::map<std::string, Application::ServerMaker> m_types;
  std::vector<Served> m_served;
};

}  // namespace sylar::detail
