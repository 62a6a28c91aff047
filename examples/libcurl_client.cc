// Unmodified libcurl in fibers. Its blocking calls suspend the fiber, so one thread makes many requests at the same time.
//
//   libcurl_client [URL]      default: asks a server of its own, which takes 300 ms for an answer
#include <curl/curl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "sylar/http/http_server.h"

namespace {

using sylar::IOManager;

// [fetch]
size_t append(char* bytes, size_t size, size_t count, void* body) {
  static_cast<std::string*>(body)->append(bytes, size * count);
  return size * count;
}

std::string fetch(const std::string& url) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  if (curl == nullptr) throw std::bad_alloc();
  std::string body;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);  // needed in every program with threads
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, 5000L);
  const CURLcode result = curl_easy_perform(curl.get());  // suspends this fiber
  if (result != CURLE_OK) throw std::runtime_error(curl_easy_strerror(result));
  return body;
}
// [fetch]

int fetchMany(const std::string& url) {
  constexpr int kRequests = 50;
  int answers = 0;  // all fibers are on one thread, and none is suspended inside ++
  const auto start = std::chrono::steady_clock::now();
  {
    // [many]
    IOManager clients(1, false, "clients");  // one thread
    for (int i = 0; i < kRequests; ++i) {
      clients.schedule([&url, &answers] {
        if (fetch(url) == "done\n") ++answers;
      });
    }
    clients.stop();
    // [many]
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%d answers, each after 300 ms, in %.2f s\n", answers, took.count());
  return answers == kRequests && took.count() < 0.3 * kRequests / 2 ? 0 : 1;
}

int show() {
  IOManager servers(1, false, "servers");
  const auto server = std::make_shared<sylar::http::HttpServer>(false, &servers, &servers, &servers);
  server->getServletDispatch()->addServlet("/slow", [](auto /*request*/, auto response, auto /*session*/) {
    usleep(300'000);
    response->setBody("done\n");
    return 0;
  });
  if (!server->bind(sylar::IPAddress::Create("127.0.0.1", 0)) || !server->start()) return 1;
  const int result = fetchMany("http://" + server->getSocks()[0]->getLocalAddress()->toString() + "/slow");
  server->stop();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  curl_global_init(CURL_GLOBAL_DEFAULT);  // must be called before there are threads
  if (argc == 1) return show();
  IOManager iom(1, false, "client");
  iom.schedule([argv] {
    try {
      std::fputs(fetch(argv[1]).c_str(), stdout);
    } catch (const std::runtime_error& error) {
      std::fprintf(stderr, "%s: %s\n", argv[1], error.what());
    }
  });
}
