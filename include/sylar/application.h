// An Application is a service: it reads a folder of YAML, builds what the folder says, serves until it is told to end, and ends
// in order.
//
//   #include "sylar/application.h"
//   #include "sylar/http/http_server.h"
//
//   int main(int argc, char** argv) {
//     sylar::Application app;
//     app.onServerReady([&app] {
//       for (const auto& server : app.servers<sylar::http::HttpServer>()) {
//         server->getServletDispatch()->addServlet("/hello", [](auto, auto response, auto) {
//           response->setBody("hello\n");
//           return 0;
//         });
//       }
//     });
//     return app.main(argc, argv);
//   }
//
// The folder defines the IOManagers (`workers`), the servers (`servers`), the logs (`logs`), and the limits and timeouts of the
// library: see config/README.md. The command line is that of CommandLine: -c DIR, --check-config, --help.
//
// On SIGHUP it reads the folder again, on a thread of its own, which also calls the listeners of settings.
//
// On SIGUSR2 it starts its program again, with the same arguments, and leaves its listening sockets to that process. When that one
// serves, this one ends as on SIGTERM. No connection is refused meanwhile. If the new process does not start, this one goes on.
// Listening sockets are also taken over from systemd. Both need addresses that name their port. Source: sd_listen_fds(3).
//
// An Application changes the process, as a library may not. Its constructor blocks SIGTERM, SIGINT, SIGHUP and SIGUSR2 in the
// calling thread, and so in the threads made later, in order to wait for them (make it first in main). run() ignores SIGPIPE and
// raises the soft limit of descriptors to the hard one.
//
// Thread safety: one per process, for its main thread; servers(), getServer(), listAllServer() and worker() from any thread
// between onServerReady and the end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sylar/api.h"
#include "sylar/app_settings.h"
#include "sylar/config.h"
#include "sylar/http/http_server.h"
#include "sylar/iomanager.h"
#include "sylar/tcp_server.h"

namespace sylar {

/// A service that is configured by a folder of YAML files.
class SYLAR_API Application {
 public:
  /// The status that main() returns.
  enum Status : int {
    kEnded = 0,      ///< ended as asked, or the configuration is right
    kTimedOut = 1,   ///< something did not end in time
    kBadConfig = 2,  ///< wrong options or configuration; nothing was started
    kNotStarted = 3  ///< an address was in use, a callback threw, ...; nothing was served
  };

  /// Knows the servers of type http. Making a second Application while one exists is a programmer error.
  Application();
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  /// Returns the existing Application, or null. Source: sylar.
  static Application* GetInstance();

  /// The IOManagers of a server.
  struct Workers {
    IOManager* process;
    IOManager* io;
    IOManager* accept;
  };
  using ServerMaker = std::function<std::shared_ptr<TcpServer>(const ServerSetting& setting, const Workers& workers)>;

  /// Registers `make` as the function that makes the servers of `type`; their name, limits and timeout are set after it. If it
  /// throws, the start ends with that exception.
  void addServerType(const std::string& type, ServerMaker make);
  /// Registers the class `Server`, a TcpServer that is made of its three workers, for the servers of `type`.
  template <class Server>
  void addServerType(const std::string& type) {
    addServerType(type,
                  [](const ServerSetting&, const Workers& w) { return std::make_shared<Server>(w.process, w.io, w.accept); });
  }

  /// Adds a callback that runs when all servers are bound and none accepts yet; this is the place to add servlets. Callbacks
  /// run in a fiber of the first worker, in the order in which they were added. An exception of one of these ends the start.
  void onServerReady(std::function<void()> callback);
  /// Adds a callback that runs, in the same way, when all servers accept. An exception ends the start.
  void onServerUp(std::function<void()> callback);
  /// Adds a callback that runs, in the same way, when the servers have been told to stop.
  void onStop(std::function<void()> callback);

  /// Calls init() and run(), and returns the status for the process.
  int main(int argc, char** argv);

  /// Reads the command line and the folder. Returns false if there is nothing to run, for a reason that was printed; status()
  /// tells more. Source: sylar.
  bool init(int argc, char** argv);
  /// Starts, serves until SIGTERM or SIGINT, and ends. Returns true if it ended in time, with nothing left. Fibers that compute
  /// forever cannot be ended; then the process ends here, with kTimedOut. Source: sylar.
  bool run();
  Status status() const;

  /// Returns the servers of a class, in the order of the files.
  template <class Server>
  std::vector<std::shared_ptr<Server>> servers() const {
    std::vector<std::shared_ptr<Server>> found;
    for (const auto& each : allServers()) {
      if (auto server = std::dynamic_pointer_cast<Server>(each)) found.push_back(std::move(server));
    }
    return found;
  }
  /// Stores the servers of a type in `servers`, and returns false if there is none. Source: sylar.
  bool getServer(const std::string& type, std::vector<std::shared_ptr<TcpServer>>& servers) const;
  void listAllServer(std::map<std::string, std::vector<std::shared_ptr<TcpServer>>>& servers) const;

  /// Returns a worker by its name, or the first by name for "". If several have the name, each is returned in turn. Returns
  /// null if there is none.
  IOManager* worker(const std::string& name) const;

 private:
  class Impl;

  std::vector<std::shared_ptr<TcpServer>> allServers() const;

  const std::unique_ptr<Impl> m_impl;
};

}  // namespace sylar
