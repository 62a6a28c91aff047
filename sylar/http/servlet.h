// What answers requests, and which of them answers a path.
//
//   auto dispatch = server->getServletDispatch();
//   dispatch->addServlet("/hello", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
//     response->setBody("hello\n");
//     return 0;
//   });
//
// A handler is ordinary blocking code in the fiber of its connection. The response that it has filled in is sent when it returns;
// what it returns is for callers of its own. An exception that leaves it is answered with 500 and ends the connection.
//
// Thread safety: one servlet answers on all workers at the same time, so handle() must allow that. A dispatch may be changed by
// any thread while it serves: each request sees it before or after a change. The settings of a servlet are made before it is
// added.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sylar/base/os_mutex.h"

namespace sylar::http {

class HttpRequest;
class HttpResponse;
class HttpSession;

class Servlet {
 public:
  using ptr = std::shared_ptr<Servlet>;

  explicit Servlet(std::string name) : m_name(std::move(name)) {}
  virtual ~Servlet() = default;
  Servlet(const Servlet&) = delete;
  Servlet& operator=(const Servlet&) = delete;

  /// Fills in `response`, or sends an answer of its own through `session`. May suspend: yes. Source: sylar.
  virtual int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                         std::shared_ptr<HttpSession> session) = 0;

  const std::string& getName() const { return m_name; }

  /// The largest body that it takes, in bytes, in place of the server's limit. A larger one is answered with 413.
  void setBodyLimit(uint64_t bytes) { m_body_limit = bytes; }
  std::optional<uint64_t> getBodyLimit() const { return m_body_limit; }

  /// True: handle() is called before the body has come, and reads it with HttpSession::readBody(). At first false: handle() finds
  /// the whole body in the request.
  void setStreaming(bool on) { m_streaming = on; }
  bool isStreaming() const { return m_streaming; }

 private:
  const std::string m_name;
  std::optional<uint64_t> m_body_limit;
  bool m_streaming = false;
};

/// A servlet that is a function.
class FunctionServlet final : public Servlet {
 public:
  using ptr = std::shared_ptr<FunctionServlet>;
  using callback =
      std::function<int32_t(std::shared_ptr<HttpRequest>, std::shared_ptr<HttpResponse>, std::shared_ptr<HttpSession>)>;

  explicit FunctionServlet(callback cb);
  int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                 std::shared_ptr<HttpSession> session) override;

 private:
  const callback m_cb;
};

/// Answers 404, with a body that tells nothing of the server.
class NotFoundServlet final : public Servlet {
 public:
  using ptr = std::shared_ptr<NotFoundServlet>;

  explicit NotFoundServlet(const std::string& name = "NotFoundServlet") : Servlet(name) {}
  int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                 std::shared_ptr<HttpSession> session) override;
};

/// Makes or finds the servlet for one request. Source: sylar.
class IServletCreator {
 public:
  using ptr = std::shared_ptr<IServletCreator>;
  virtual ~IServletCreator() = default;
  virtual Servlet::ptr get() const = 0;
  virtual std::string getName() const = 0;
};

/// The same servlet for all requests.
class HoldServletCreator final : public IServletCreator {
 public:
  explicit HoldServletCreator(Servlet::ptr servlet) : m_servlet(std::move(servlet)) {}
  Servlet::ptr get() const override { return m_servlet; }
  std::string getName() const override { return m_servlet->getName(); }

 private:
  const Servlet::ptr m_servlet;
};

/// A new T for each request: for handlers that keep state in their members.
template <class T>
class ServletCreator final : public IServletCreator {
 public:
  Servlet::ptr get() const override { return std::make_shared<T>(); }
  std::string getName() const override { return T().getName(); }
};

struct RouteTable;

/// What a session remembers of the dispatch that served it last, so that the next request takes no lock. Belongs to one fiber.
struct RouteCache {
  uint64_t version = 0;
  std::shared_ptr<const RouteTable> table;
};

/// Finds the servlet for a path: the one of exactly this path, else the first whose glob matches, in the order in which they were
/// added, else the default one.
class ServletDispatch : public Servlet {
 public:
  using ptr = std::shared_ptr<ServletDispatch>;

  /// The default is a NotFoundServlet.
  ServletDispatch();

  /// Hands the request to the servlet of its path, after its body has come unless that servlet streams.
  int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                 std::shared_ptr<HttpSession> session) override;

  /// Adds what answers `uri`, in place of what was there. Null is a programmer error. Throws std::bad_alloc; then nothing has
  /// changed. Suspends: no.
  void addServlet(const std::string& uri, Servlet::ptr servlet);
  void addServlet(const std::string& uri, FunctionServlet::callback cb);
  void addServletCreator(const std::string& uri, IServletCreator::ptr creator);
  template <class T>
  void addServletCreator(const std::string& uri) {
    addServletCreator(uri, std::make_shared<ServletCreator<T>>());
  }

  /// The same for all paths that match the shell pattern `uri`, in which * also stands for slashes. A pattern that was there goes
  /// to the end. Source: fnmatch(3), without flags.
  void addGlobServlet(const std::string& uri, Servlet::ptr servlet);
  void addGlobServlet(const std::string& uri, FunctionServlet::callback cb);
  void addGlobServletCreator(const std::string& uri, IServletCreator::ptr creator);
  template <class T>
  void addGlobServletCreator(const std::string& uri) {
    addGlobServletCreator(uri, std::make_shared<ServletCreator<T>>());
  }

  /// Requests that have begun still end with what was removed.
  void delServlet(const std::string& uri);
  void delGlobServlet(const std::string& uri);

  Servlet::ptr getDefault() const;
  void setDefault(Servlet::ptr servlet);

  /// What was added under exactly this path, this pattern; null: nothing.
  Servlet::ptr getServlet(const std::string& uri) const;
  Servlet::ptr getGlobServlet(const std::string& uri) const;
  /// What answers the path `uri`.
  Servlet::ptr getMatchedServlet(const std::string& uri) const;

  /// Adds all paths, all patterns, with what was added under them, to `infos`.
  void listAllServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const;
  void listAllGlobServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const;

 private:
  void change(const std::function<void(RouteTable&)>& edit);
  std::shared_ptr<const RouteTable> table() const;

  mutable OsMutex m_mutex;
  std::shared_ptr<const RouteTable> m_table SYLAR_GUARDED_BY(m_mutex);
  std::atomic<uint64_t> m_version{0};  // of m_table; no two tables of a process have the same
};

}  // namespace sylar::http
