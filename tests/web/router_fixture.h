// For tests of a Router in a server, asked over real connections.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sylar/http/router.h"
#include "tests/http/client.h"
#include "tests/support/fibers.h"

namespace sylar::http::test {

/// Answers with the method and the named parts of the path.
inline Router::Handler echo(std::vector<std::string> names = {}) {
  return [names](HttpRequest& asked, HttpResponse& response) {
    std::string text = HttpMethodToString(asked.getMethod());
    for (const std::string& name : names) text += ' ' + name + '=' + asked.getPathParam(name);
    response.text(text);
  };
}

inline Router::Handler say(const std::string& text) {
  return [text](HttpRequest&, HttpResponse& response) { response.text(text); };
}

class RouterTest : public testing::Test {
 protected:
  RouterTest() : m_server(std::make_unique<Serving<>>()) { (*m_server)->setServletDispatch(m_router); }

  Router& router() { return *m_router; }
  uint16_t port() const { return m_server->port(); }
  Answer ask(const std::string& method, const std::string& path, const std::string& fields = "") {
    Client client(port());
    client.say(request(method, path, fields));
    return client.read(method == "HEAD");
  }
  std::string bodyOf(const std::string& path) { return ask("GET", path).body; }

 private:
  sylar::test::LeakCheck m_leaks;
  const Router::ptr m_router = std::make_shared<Router>();
  std::unique_ptr<Serving<>> m_server;
};

}  // namespace sylar::http::test
