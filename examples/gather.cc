// A proxy that gathers: each request asks an upstream for 50 parts at once, with retries, and answers at the deadline with what has
// come by then. If the client goes, its upstream calls end.
//
//   gather URL [PORT [SECONDS]]       defaults: 8080, 2; port 0: any
//   curl http://127.0.0.1:8080/
#include <curl/curl.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <system_error>

#include "sylar/http/http_server.h"
#include "sylar/peer_scope.h"
#include "sylar/signal_wait.h"
#include "sylar/sync/task_group.h"

size_t append(char* bytes, size_t size, size_t count, void* body) {
  static_cast<std::string*>(body)->append(bytes, size * count);
  return size * count;
}

bool fetch(const std::string& url, std::string& body) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  const bool whole = curl_easy_perform(curl.get()) == CURLE_OK;  // suspends; the deadline and the client's end reach in here
  if (!whole) body.clear();
  return whole;
}

std::string gather(const std::string& url, std::chrono::seconds patience) {
  std::string parts[50];
  try {
    sylar::withDeadline(sylar::Deadline::after(patience), [&] {
      sylar::TaskGroup group;
      for (int i = 0; i < 50; ++i)
        group.spawn([&, i] {
          for (int tries = 3; tries > 0 && !fetch(url + "?part=" + std::to_string(i), parts[i]);) --tries;
        });
      group.join();
    });
  } catch (const std::system_error&) {  // the time is up, or the client has gone
  }
  return std::accumulate(std::begin(parts), std::end(parts), std::string());
}

int main(int argc, char** argv) {
  sylar::SignalWait end;  // takes SIGINT and SIGTERM; must be made before the workers
  sylar::IOManager iom(2, false, "gather");
  const auto server = std::make_shared<sylar::http::HttpServer>(true, &iom, &iom, &iom);
  server->getServletDispatch()->addServlet("/", [=](auto, auto response, auto session) {
    const sylar::PeerScope client(*session->getSocket());
    response->setBody(gather(argv[1], std::chrono::seconds(argc > 3 ? std::atoi(argv[3]) : 2)));
    return 0;
  });
  const auto address = sylar::IPAddress::Create("127.0.0.1", static_cast<uint16_t>(argc > 2 ? std::atoi(argv[2]) : 8080));
  if (argc < 2 || !server->bind(address) || !server->start()) return 1;
  std::cout << "listening on " << server->getSocks()[0]->getLocalAddress()->toString() << std::endl;
  end.wait();
  server->stop();
}
