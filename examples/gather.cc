// A proxy that gathers: each request asks an upstream for 50 parts at once, with retries, and answers at the deadline with what has
// come by then. If the client goes, its upstream calls end.
//
//   gather URL [PORT [SECONDS]]       defaults: 8080, 2; port 0: any
//   curl http://127.0.0.1:8080/
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <system_error>

#include "sylar/http/client.h"
#include "sylar/http/http_server.h"
#include "sylar/peer_scope.h"
#include "sylar/signal_wait.h"
#include "sylar/sync/task_group.h"

// [fetch]
bool fetch(sylar::http::Client& client, const std::string& url, std::string& body) {
  try {
    auto answer = client.get(url);  // suspends; the deadline and the end of our client reach in here
    if (answer.status != sylar::http::HttpStatus::OK) return false;
    body = std::move(answer.body);
    return true;
  } catch (const sylar::http::ClientError&) {
    return false;
  }
}
// [fetch]

std::string gather(sylar::http::Client& client, const std::string& url, std::chrono::seconds patience) {
  std::string parts[50];
  try {
    sylar::withDeadline(sylar::Deadline::after(patience), [&] {
      sylar::TaskGroup group;
      for (int i = 0; i < 50; ++i)
        group.spawn([&, i] {
          for (int tries = 3; tries > 0 && !fetch(client, url + "?part=" + std::to_string(i), parts[i]);) --tries;
        });
      group.join();
    });
  } catch (const std::system_error&) {  // the time is up, or the client has gone
  }
  return std::accumulate(std::begin(parts), std::end(parts), std::string());
}

int main(int argc, char** argv) {
  sylar::SignalWait end;       // takes SIGINT and SIGTERM; must be made before the workers
  sylar::http::Client client;  // before the workers, whose fibers use it to their ends
  sylar::IOManager iom(2, false, "gather");
  const auto server = std::make_shared<sylar::http::HttpServer>(true, &iom, &iom, &iom);
  server->getServletDispatch()->addServlet("/", [=, &client](auto, auto response, auto session) {
    const sylar::PeerScope peer(*session->getSocket());
    response->setBody(gather(client, argv[1], std::chrono::seconds(argc > 3 ? std::atoi(argv[3]) : 2)));
    return 0;
  });
  const auto address = sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 2 ? std::atoi(argv[2]) : 8080));
  if (argc < 2 || !server->bind(address) || !server->start()) return 1;
  std::cout << "listening on " << server->getSocks()[0]->getLocalAddress()->toString() << std::endl;
  end.wait();
  server->stop();
}
