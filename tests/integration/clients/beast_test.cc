// Unmodified Boost.Asio and Boost.Beast with their synchronous calls in many fibers.
#include <optional>
#include <string>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "tests/integration/clients/fleet.h"

namespace sylar::test {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using Error = boost::system::error_code;

/// A connection that is kept.
class HttpClient {
 public:
  std::string connect(const char* host, int port) {
    Error error;
    const auto addresses = tcp::resolver(m_context).resolve(host, std::to_string(port), error);
    if (!error) {
      m_socket.emplace(m_context);
      boost::asio::connect(*m_socket, addresses, error);
    }
    return line(error.message());
  }

  std::string get(const char* path) {
    http::request<http::empty_body> request(http::verb::get, path, 11);
    request.set(http::field::host, Server::kName);
    Error error;
    http::write(*m_socket, request, error);
    http::response<http::string_body> response;
    if (!error) http::read(*m_socket, m_buffer, response, error);
    return line(error.message()) + line(std::to_string(response.result_int())) + line(response.body());
  }

 private:
  boost::asio::io_context m_context;
  std::optional<tcp::socket> m_socket;
  boost::beast::flat_buffer m_buffer;
};

std::string client(Server& server) {
  HttpClient http;
  std::string said = http.connect(Server::kName, server.port());
  said += http.get("/large");
  said += http.get("/slow");
  said += http.get("/nothing");
  server.stalls();
  said += http.get("/slow");
  server.dies();
  said += http.get("/slow");
  server.isGone();
  said += http.connect(Server::kAddress, server.port());
  server.returns();
  said += http.connect(Server::kAddress, server.port());
  said += http.get("/large");
  return said;
}

// HA-6
TEST(Beast, SaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("nginx", &client); }

}  // namespace
}  // namespace sylar::test
