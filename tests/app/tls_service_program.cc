// A service that may speak TLS, because it links that component. Its servers answer /hello.
#include <memory>

#include "sylar/application.h"
#include "sylar/http/http_server.h"

int main(int argc, char** argv) {
  sylar::Application app;
  app.onServerReady([&app] {
    for (const auto& server : app.servers<sylar::http::HttpServer>()) {
      server->getServletDispatch()->addServlet("/hello", [](auto /*request*/, auto response, auto /*session*/) {
        response->setBody("hello\n");
        return 0;
      });
    }
  });
  return app.main(argc, argv);
}
