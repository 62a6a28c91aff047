// A service: reads a folder of YAML, builds what it says, serves until it is told to end, and ends in order.
//
//   int main(int argc, char** argv) {
//     sylar::Application app;
//     app.onServerReady([&app] {
//       for (const auto& server : app.servers<sylar::http::HttpServer>()) {
//         server->getServletDispatch()->addServlet("/hello", [](auto, auto response, auto) { response->setBody("hello\n"); return
//         0; });
//       }
//     });
//     return app.main(argc, argv);
//   }
//
// The folder says which IOManagers (`workers`) and servers (`servers`) there are, how it logs (`logs`), and what the library's
// limits and timeouts are: see config/README.md. The command line is CommandLine's: -c DIR, --check-config, --help.
//
// What it does to the process, and a library may not: its constructor blocks SIGTERM, SIGINT and SIGHUP in the calling thread,
// and so in those made later, to wait for them (make it first in main); run() ignores SIGPIPE and raises the soft limit of
// descriptors to the hard one.
//
// Thread safety: one per process, for its main thread; servers(), getServer(), listAllServer() and worker() from anywhere between
// onServerReady and the end.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sylar/app/settings.h"
#include "sylar/base/clock.h"
#include "sylar/config/config_error.h"
#include "sylar/io/iomanager.h"
#include "sylar/net/tcp_server.h"

namespace sylar {

class PidFile;

class Application {
 public:
  /// What main() returns.
  enum Status : int {
    kEnded = 0,      ///< as asked; or the configuration is right
    kCutOff = 1,     ///< something did not end in time
    kMisused = 2,    ///< wrong options or configuration; nothing was started
    kNotStarted = 3  ///< an address was in use, a callback threw, ...; nothing was served
  };

  /// Knows the servers of type http. A second one at the same time is a programmer error.
  Application();
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  /// The one that exists, or null. Source: sylar.
  static Application* GetInstance();

  /// The IOManagers of a server.
  struct Workers {
    IOManager* process;
    IOManager* io;
    IOManager* accept;
  };
  using ServerMaker = std::function<TcpServer::ptr(const ServerSetting& setting, const Workers& workers)>;

  /// Has `make` make the servers of `type`; their name, limits and timeout are set after it. What it throws ends the start.
  void addServerType(const std::string& type, ServerMaker make);
  /// The same for a TcpServer that is made of its three workers.
  template <class Server>
  void addServerType(const std::string& type) {
    addServerType(type,
                  [](const ServerSetting&, const Workers& w) { return std::make_shared<Server>(w.process, w.io, w.accept); });
  }

  /// Called in a fiber of the first worker: when all servers are bound and none accepts yet (the place for servlets), when all
  /// accept, and when they have been told to stop. In the order in which they were added. What the first two throw ends the
  /// start.
  void onServerReady(std::function<void()> callback) { m_on_ready.push_back(std::move(callback)); }
  void onServerUp(std::function<void()> callback) { m_on_up.push_back(std::move(callback)); }
  void onStop(std::function<void()> callback) { m_on_stop.push_back(std::move(callback)); }

  /// All of it: init(), run(), and the status for the process.
  int main(int argc, char** argv);

  /// Reads command line and folder. False: there is nothing to run, for the reason that was printed; status() tells. Source:
  /// sylar.
  bool init(int argc, char** argv);
  /// Starts, serves until SIGTERM or SIGINT, and ends. True: in time, with nothing left. Fibers that compute for ever cannot be
  /// ended: then the process ends here, with kCutOff. Source: sylar.
  bool run();
  Status status() const { return m_status; }

  /// The servers of a class, in the order of the files.
  template <class Server>
  std::vector<std::shared_ptr<Server>> servers() const {
    std::vector<std::shared_ptr<Server>> found;
    for (const Served& each : m_servers) {
      if (auto server = std::dynamic_pointer_cast<Server>(each.server)) found.push_back(std::move(server));
    }
    return found;
  }
  /// Those of a type; false: there is none. Source: sylar.
  bool getServer(const std::string& type, std::vector<TcpServer::ptr>& servers) const;
  void listAllServer(std::map<std::string, std::vector<TcpServer::ptr>>& servers) const;

  /// A worker by its name, "" for the first by name; of several, each in turn. Null: there is none.
  IOManager* worker(const std::string& name) const;

 private:
  struct Served {
    std::string type;
    TcpServer::ptr server;
  };
  struct WorkerGroup;

  LoadResult load(bool force) const;
  std::vector<ConfigError> check(const ConfigPreview& next) const;
  bool start();
  void makeWorkers();
  void warnOfNothing() const;
  void makeServers();
  void bind(TcpServer& server, size_t index, const ServerSetting& setting, std::vector<ConfigError>& errors);
  bool inFiber(const std::vector<std::function<void()>>& callbacks);
  std::future<void> tellOfStop();
  void reload();
  bool drain(Deadline deadline);
  void waitForSignals();

  std::string m_config_dir;
  Status m_status = kEnded;
  bool m_up = false;  // the servers accept, or did
  std::map<std::string, ServerMaker> m_types;
  std::vector<std::function<void()>> m_on_ready, m_on_up, m_on_stop;
  std::unique_ptr<PidFile> m_pid_file;
  std::vector<std::unique_ptr<WorkerGroup>> m_workers;  // in the order of their names; outlive the servers
  std::vector<Served> m_servers;
};

}  // namespace sylar
