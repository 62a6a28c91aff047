// A service in one file: a handler and a setting. Everything else comes from a folder of YAML.
//
//   mkdir conf
//   echo "servers: [{type: http, address: ['127.0.0.1:8030'], keepalive: true}]" > conf/server.yml
//   echo "greeting: {name: Ada}"                                                  > conf/greeting.yml
//   first_server               then:  curl http://127.0.0.1:8030/hello
// [program]
#include "sylar/sylar.h"

static auto g_name = sylar::Config::Lookup<std::string>("greeting.name", "you", "whom /hello greets");

int main(int argc, char** argv) {
  sylar::Application app;
  app.onServerReady([&app] {
    for (const auto& server : app.servers<sylar::http::HttpServer>()) {
      server->getServletDispatch()->addServlet("/hello", [](auto /*request*/, auto response, auto /*session*/) {
        usleep(100'000);  // suspends this fiber; the thread serves others
        response->setBody("Hello, " + g_name->getValue() + "\n");
        return 0;
      });
    }
  });
  return app.main(argc, argv);  // reads a folder of YAML, serves until SIGTERM, ends in order
}
// [program]
