// A server that begins as root and serves as somebody else. It listens, which may need root for a port below 1024, looks up the
// user in a fiber, and gives up its rights. libc does that in every thread, so the workers have none either.
//
//   sudo drop_privileges [USER] [PORT]      defaults: nobody, 80; port 0: any
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sylar/http/http_server.h"
#include "sylar/signal_wait.h"
#include "sylar/sync/future.h"

using namespace sylar::http;

// [become]
/// Makes the process that of `user`. The order matters: root's groups go first, and the user last.
bool become(const std::string& user) {
  const passwd* const found = getpwnam(user.c_str());
  return found != nullptr && initgroups(user.c_str(), found->pw_gid) == 0 && setgid(found->pw_gid) == 0 &&
         setuid(found->pw_uid) == 0;
}
// [become]

int main(int argc, char** argv) {
  const std::string user = argc > 1 ? argv[1] : "nobody";
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers

  sylar::IOManager iom(2, false, "server");
  const auto server = std::make_shared<HttpServer>(true, &iom, &iom, &iom);
  server->getServletDispatch()->addServlet("/", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
    response->setBody("served by " + std::string(getpwuid(geteuid())->pw_name) + "\n");
    return 0;
  });
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 2 ? std::atoi(argv[2]) : 80)))) return 1;
  std::printf("listening on %s\n", server->getSocks()[0]->getLocalAddress()->toString().c_str());

  if (!sylar::go([&] { return become(user); }, &iom).get()) return std::perror(("drop_privileges: " + user).c_str()), 1;
  std::printf("now %s\n", user.c_str());
  std::fflush(stdout);
  server->start();

  end.wait();
  server->stop();
}
