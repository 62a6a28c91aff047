// For tests of the HTTP server: a server in this process, and a client on a plain thread that says exactly what it is told.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sylar/http/http_server.h"

namespace sylar::http::test {

struct Answer {
  int status = 0;  ///< 0: the connection ended before there was one; -1: what came is no HTTP
  std::map<std::string, std::string> headers;
  std::string body;
};

/// A connection of a client. Nothing lasts longer than 20 s, so that a test fails and does not hang.
class Client {
 public:
  explicit Client(uint16_t port) : m_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
    const timeval patience{20, 0};
    const int on = 1;
    ::setsockopt(m_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(m_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    m_connected = ::connect(m_fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { ::close(m_fd); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool isConnected() const { return m_connected; }
  /// Its address, as the server sees it.
  std::string name() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(m_fd, reinterpret_cast<sockaddr*>(&address), &size);
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  int fd() const { return m_fd; }
  /// False: the server has reset the connection.
  bool say(std::string_view text) {
    return ::send(m_fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  void sayNoMore() { ::shutdown(m_fd, SHUT_WR); }

  Answer get(const std::string& path) {
    say("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return read();
  }
  Answer post(const std::string& path, const std::string& body) {
    say("POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return read();
  }

  /// The next answer, framed as it says; `to_head`: one that has no body.
  Answer read(bool to_head = false) {
    Answer answer;
    const std::string status = line();
    if (status.empty()) return answer;
    answer.status = -1;
    if (!status.starts_with("HTTP/1.1 ") || status.size() < 12) return answer;
    answer.status = std::stoi(status.substr(9, 3));
    for (std::string field; !(field = line()).empty();) {
      const size_t colon = field.find(": ");
      std::transform(field.begin(), field.begin() + static_cast<ptrdiff_t>(colon), field.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      answer.headers[field.substr(0, colon)] = field.substr(colon + 2);
    }
    if (to_head || answer.status < 200) return answer;
    if (answer.headers.count("transfer-encoding") != 0) {
      for (size_t size; (size = std::stoul("0" + line(), nullptr, 16)) > 0; line()) answer.body += bytes(size);
      line();
    } else if (answer.headers.count("content-length") != 0) {
      answer.body = bytes(std::stoul(answer.headers["content-length"]));
    }
    return answer;
  }

  /// Returns the bytes that still come, up to the end. None means that it ended in order.
  std::string rest() {
    while (more()) {
    }
    return std::exchange(m_read, {});
  }
  /// Whether the end was a reset.
  bool wasReset() const { return m_error == ECONNRESET; }
  /// Whether the end has come, in one way or the other.
  bool hasEnded() const { return m_ended; }

 private:
  bool more() {
    char buffer[16 * 1024];
    const ssize_t count = ::recv(m_fd, buffer, sizeof buffer, 0);
    if (count > 0) m_read.append(buffer, static_cast<size_t>(count));
    if (count < 0) m_error = errno;
    m_ended = count == 0 || (count < 0 && errno != EAGAIN);
    return count > 0;
  }
  std::string line() {
    size_t end;
    while ((end = m_read.find("\r\n")) == std::string::npos) {
      if (!more()) return {};
    }
    const std::string text = m_read.substr(0, end);
    m_read.erase(0, end + 2);
    return text;
  }
  std::string bytes(size_t count) {
    while (m_read.size() < count && more()) {
    }
    const std::string text = m_read.substr(0, count);
    m_read.erase(0, count);
    return text;
  }

  const int m_fd;
  bool m_connected = false;
  bool m_ended = false;
  int m_error = 0;
  std::string m_read;
};

/// A started server on a free port of this host. Its end waits for its connections.
template <class Server = HttpServer>
class Serving {
 public:
  explicit Serving(bool keepalive = true, const HttpLimits& limits = {}, size_t workers = 2)
      : m_iom(workers, false, "http"), m_server(std::make_shared<Server>(keepalive, &m_iom, &m_iom, &m_iom)) {
    m_server->setHttpLimits(limits);
    EXPECT_TRUE(m_held->bind(IPAddress::Create("127.0.0.1", 0)));
    EXPECT_TRUE(m_server->bind(m_held->getLocalAddress()));
    m_port = std::dynamic_pointer_cast<IPAddress>(m_server->getSocks().at(0)->getLocalAddress())->getPort();
    EXPECT_TRUE(m_server->start());
  }
  ~Serving() { m_server->stop(); }

  Server* operator->() { return m_server.get(); }
  IOManager& iom() { return m_iom; }
  uint16_t port() const { return m_port; }
  void on(const std::string& path, FunctionServlet::callback cb) {
    m_server->getServletDispatch()->addServlet(path, std::move(cb));
  }
  void onStream(const std::string& path, FunctionServlet::callback cb) {
    const auto servlet = std::make_shared<FunctionServlet>(std::move(cb));
    servlet->setStreaming(true);
    m_server->getServletDispatch()->addServlet(path, servlet);
  }

 private:
  const Socket::ptr m_held = Socket::CreateTCPSocket();  // bound: when the server has stopped, no other process gets its port
  IOManager m_iom;
  std::shared_ptr<Server> m_server;
  uint16_t m_port = 0;
};

/// The shortest request.
inline std::string request(const std::string& method, const std::string& target, const std::string& fields = "") {
  return method + ' ' + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

inline int32_t hello(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
  response->setBody("hello");
  return 0;
}

inline int32_t sizeOfBody(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) {
  response->setBody(std::to_string(request->getBody().size()));
  return 0;
}

}  // namespace sylar::http::test
