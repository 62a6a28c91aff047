#include "sylar/app/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "sylar/app/listen_address.h"
#include "sylar/app_settings.h"
#include "sylar/base/log.h"
#include "sylar/http/http_server.h"
#include "sylar/http/limits.h"
#include "sylar/net/tls_component.h"

namespace sylar::detail {
namespace {

/// Returns a place within a setting that is a list, such as "[2].address[0]".
std::string step(size_t index, const std::string& field = "") {
  return fmt::format("[{}]{}", index, field.empty() ? "" : '.' + field);
}

TcpServer::ptr makeHttpServer(const ServerSetting& setting, const Application::Workers& workers) {
  auto server = std::make_shared<http::HttpServer>(setting.keepalive, workers.process, workers.io, workers.accept);
  http::HttpLimits limits = httpLimitsSetting();
  // Silent connections are closed, with their lingering, before the deadline of drain(), which would cut them off.
  const auto atMost = [](auto& limit, auto most) { limit = std::min<std::chrono::nanoseconds>(limit, most); };
  atMost(limits.new_grace, drainSetting() / 2);
  atMost(limits.kept_grace, drainSetting() / 2);
  atMost(limits.linger_timeout, drainSetting() / 4);
  if (setting.timeout > 0) limits.first_byte_timeout = limits.idle_timeout = std::chrono::milliseconds(setting.timeout);
  server->setHttpLimits(limits);
  return server;
}

/// Returns what is wrong with the fields for TLS, and in which, or two empty strings.
std::pair<std::string, std::string> tlsMistake(const ServerSetting& server) {
  const bool has_files = !server.cert_file.empty() || !server.key_file.empty();
  if (!server.ssl)
    return has_files ? std::pair("ssl", "is false, so cert_file and key_file would not be used") : std::pair("", "");
  if (&sylar_tls_component == nullptr) return {"ssl", "needs the component sylar::tls, which this program does not link"};
  if (server.cert_file.empty()) return {"cert_file", "is needed for ssl"};
  return server.key_file.empty() ? std::pair("key_file", "is needed for ssl") : std::pair("", "");
}

/// Returns true if a listener on one address keeps the other from its port: they are the same, or one of them is the wildcard.
bool sharePort(const IPAddress& a, const IPAddress& b) {
  if (a.getFamily() != b.getFamily() || a.getPort() != b.getPort()) return false;
  const auto all = IPAddress::Create(a.getFamily() == AF_INET ? "0.0.0.0" : "::", static_cast<uint16_t>(a.getPort()));
  return a == b || a == *all || b == *all;
}

/// An address that the service listens on, and its place in the setting `servers`.
struct Bound {
  Address::ptr address;
  std::string where;
};

/// Returns ", by " and the entry of the same files that already listens on `address`, or "" if there is none.
std::string holderOf(const Address& address, const std::vector<Bound>& bound) {
  const auto* const wanted = dynamic_cast<const IPAddress*>(&address);
  for (const Bound& each : bound) {
    const auto* const taken = dynamic_cast<const IPAddress*>(each.address.get());
    if (wanted == nullptr || taken == nullptr || !sharePort(*wanted, *taken)) continue;
    return fmt::format(", by servers{}, which listens on {}", each.where, taken->toString());
  }
  return "";
}

/// Binds all addresses of a server; adds those that are bound to `bound`, and failures to `errors`.
void bind(TcpServer& server, size_t index, const ServerSetting& setting, std::vector<Bound>& bound,
          std::vector<ConfigError>& errors) {
  for (size_t i = 0; i < setting.address.size(); ++i) {
    const std::string where = step(index, "address" + step(i));
    const auto wrong = [&](const std::string& why) { errors.push_back(Config::errorAt("servers", where, why)); };
    try {
      const size_t before = server.getSocks().size();
      std::vector<Address::ptr> fails;
      if (server.bind(resolveListenAddress(setting.address[i]), fails)) {
        const std::vector<Socket::ptr> sockets = server.getSocks();
        for (size_t k = before; k < sockets.size(); ++k) bound.push_back({sockets[k]->getLocalAddress(), where});
        continue;
      }
      const int error = errno;
      const std::string holder = error == EADDRINUSE ? holderOf(*fails.front(), bound) : "";
      wrong(fmt::format("cannot listen on {}: {}{}", fails.front()->toString(), std::system_category().message(error), holder));
    } catch (const std::runtime_error& failure) {
      wrong(failure.what());
    }
  }
}

}  // namespace

Servers::Servers() { addType("http", makeHttpServer); }

std::vector<ConfigError> Servers::check(const ConfigPreview& next) const {
  std::vector<ConfigError> errors;
  const auto wrong = [&](const std::string& where, const std::string& why) {
    errors.push_back(next.errorAt("servers", where, why));
  };
  const auto names = [](const auto& map) {
    std::string text;
    for (const auto& [name, value] : map) text += (text.empty() ? "" : ", ") + name;
    return text;
  };

  const WorkerSettings workers = next.value(workerSettings());
  std::map<std::string, std::string> taken;
  const ServerSettings servers = next.value(serverSettings());
  for (size_t i = 0; i < servers.size(); ++i) {
    const ServerSetting& server = servers[i];
    if (!m_types.contains(server.type)) wrong(step(i, "type"), "is no type of server; there are " + names(m_types));
    for (const auto& [field, name] : {std::pair("accept_worker", server.accept_worker),
                                      {"io_worker", server.io_worker},
                                      {"process_worker", server.process_worker}}) {
      if (name.empty() || workers.contains(name)) continue;
      wrong(step(i, field),
            workers.empty() ? "is no worker; the setting workers has none" : "is no worker; there are " + names(workers));
    }
    if (const auto [field, why] = tlsMistake(server); !field.empty()) wrong(step(i, field), why);
    for (size_t j = 0; j < server.address.size(); ++j) {
      const std::string& address = server.address[j];
      const std::string where = step(i, "address" + step(j));
      if (const std::string rule = listenAddressRule(address); !rule.empty()) wrong(where, rule);
      const auto [other, is_new] = taken.emplace(address, where);
      if (!is_new && !address.ends_with(":0")) wrong(where, "is taken by servers" + other->second);
    }
  }
  return errors;
}

void Servers::make(const WorkerGroups& workers) {
  const ServerSettings settings = serverSettings().getValue();
  std::vector<ConfigError> errors;
  std::vector<Bound> bound;
  for (size_t i = 0; i < settings.size(); ++i) {
    const ServerSetting& setting = settings[i];
    const auto server = m_types.at(setting.type)(
        setting, {workers.get(setting.process_worker), workers.get(setting.io_worker), workers.get(setting.accept_worker)});
    if (server == nullptr)
      throw std::runtime_error(fmt::format("servers[{}]: nothing was made for the type {}", i, setting.type));
    server->setName(!setting.name.empty() ? setting.name : setting.type);
    server->setLimits(tcpServerLimitsSetting());
    server->setRecvTimeout(setting.timeout > 0 ? setting.timeout : readTimeoutSetting());
    server->setIdleTimeout(idleTimeoutSetting());
    Served served{setting.type, server, nullptr};
    try {
      if (setting.ssl) served.reload_tls = sylar_tls_component.serve(*server, setting.cert_file, setting.key_file);
    } catch (const std::runtime_error& failure) {
      errors.push_back(Config::errorAt("servers", step(i, "ssl"), failure.what()));
    }
    bind(*server, i, setting, bound, errors);
    m_served.push_back(std::move(served));
  }
  if (errors.empty()) return;
  std::string text;
  for (const ConfigError& error : errors) text += (text.empty() ? "" : "\n") + error.toString();
  throw std::runtime_error(text);
}

void Servers::reloadTls() {
  for (const Served& each : m_served) {
    try {
      if (each.reload_tls != nullptr) each.reload_tls();
    } catch (const std::runtime_error& failure) {
      log::error("{} keeps its certificate: {}", each.server->getName(), failure.what());
    }
  }
}

/// Warns of settings that are valid but serve nobody.
void Servers::warnOfNothing(const std::string& config_dir) const {
  if (m_served.empty()) log::warn("{}: the setting servers is empty: nobody is served", config_dir);
  for (const Served& each : m_served) {
    const auto server = std::dynamic_pointer_cast<http::HttpServer>(each.server);
    if (server == nullptr) continue;
    std::map<std::string, http::IServletCreator::ptr> servlets;
    const auto dispatch = server->getServletDispatch();
    dispatch->listAllServletCreator(servlets);
    dispatch->listAllGlobServletCreator(servlets);
    const bool finds_nothing = std::dynamic_pointer_cast<http::NotFoundServlet>(dispatch->getDefault()) != nullptr;
    if (servlets.empty() && finds_nothing) {
      log::warn("{} has no servlets: every request is answered with 404; add them in onServerReady", server->getName());
    }
  }
}

std::vector<Socket::ptr> Servers::listeners() const {
  std::vector<Socket::ptr> all;
  for (const Served& each : m_served) {
    const auto sockets = each.server->getSocks();
    all.insert(all.end(), sockets.begin(), sockets.end());
  }
  return all;
}

}  // namespace sylar::detail
