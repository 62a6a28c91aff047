// A service of one file: a handler, a setting, and everything else from a folder of YAML.
//
//   mkdir conf
//   echo "servers: [{type: http, address: ['127.0.0.1:8030'], keepalive: true}]" > conf/server.yml
//   echo "greeting: {name: Ada}"                                                  > conf/greeting.yml
//   service_of_one_file        then:  curl http://127.0.0.1:8030/hello
#include <string>

#include "sylar/sylar.h"

static auto g_name = sylar::Config::Lookup<std::string>("greeting.name", "you", "whom /hello greets");

int main(int argc, char** argv) {
  sylar::Application app;
  app.onServerReady([&app] {
    for (const auto& server : app.servers<sylar::http::HttpServer>()) {
      server->getServletDispatch()->addServlet("/hello", [](auto /*request*/, auto response, auto /*session*/) {
        response->setBody("Hello, " + g_name->getValue() + "\n");
        return 0;
      });
    }
  });
  return app.main(argc, argv);
}
