// Servlets, which answer requests, and the dispatch that finds the servlet of a path.
//
//   auto dispatch = server->getServletDispatch();
//   dispatch->addServlet("/hello", [](HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
//     response->setBody("hello\n");
//     return 0;
//   });
//
// A handler is ordinary blocking code in the fiber of its connection. When it returns, the server sends the response that it has
// filled in, and ignores its return value. If an exception leaves the handler, the server answers 500 and ends the connection.
//
// If the fiber of a handler is cancelled, for example because the time that a service has for its end is over, the handler's
// waits fail with ECANCELED and the handler goes on. Its response is not sent: the server answers 503 with `connection: close`,
// and cuts an answer in pieces that the handler has not ended itself. A handler that has nevertheless finished its work sends the
// response itself with HttpSession::sendResponse().
//
// Thread safety: one servlet answers on all workers at the same time, so handle() must allow that. Any thread may change a
// dispatch while it serves, and each request sees it before or after a change. The settings of a servlet must be made before it
// is added.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sylar/api.h"
#include "sylar/http/method_set.h"

namespace sylar::http {

class HttpRequest;
class HttpResponse;
class HttpSession;

namespace detail {
struct RouteTable;
}

class SYLAR_API Servlet {
 public:
  using ptr = std::shared_ptr<Servlet>;

  explicit Servlet(std::string name) : m_name(std::move(name)) {}
  virtual ~Servlet() = default;
  Servlet(const Servlet&) = delete;
  Servlet& operator=(const Servlet&) = delete;

  /// Fills in `response`, or sends its own answer through `session`. May suspend: yes. Source: sylar.
  virtual int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                         std::shared_ptr<HttpSession> session) = 0;

  const std::string& getName() const { return m_name; }

  /// Sets the methods that reach handle(). ServletDispatch answers the others with 405 and Allow, but OPTIONS with 200 and Allow.
  /// The default is MethodSet::ordinary(). A handler that looks at the method may thus serve a whole resource, and one that does
  /// not treats PUT, PATCH and DELETE as it treats GET and POST.
  void setMethods(MethodSet methods) { m_methods = methods; }
  MethodSet getMethods() const { return m_methods; }

  /// ServletDispatch calls the gate before it takes any of the body. If the gate returns false, the response that it has filled
  /// in is the answer. The gate is for checks that need no body, such as authentication; a client that asks with `Expect:
  /// 100-continue` is answered before it sends one. Null, the default, is no gate. (A gate before all servlets is a
  /// ServletDispatch with its own handle().)
  using Gate = std::function<bool(const HttpRequest&, HttpResponse&)>;
  void setGate(Gate gate) { m_gate = std::move(gate); }
  const Gate& getGate() const { return m_gate; }

  /// Sets the size in bytes of the largest body that the servlet takes, in place of HttpLimits::max_body. A larger one is
  /// answered with 413.
  void setBodyLimit(uint64_t bytes) { m_body_limit = bytes; }
  std::optional<uint64_t> getBodyLimit() const { return m_body_limit; }

  /// If `on` is true, handle() is called before the body has arrived and reads it with HttpSession::readBody(). If it is false,
  /// the default, handle() finds the whole body in the request.
  void setStreaming(bool on) { m_streaming = on; }
  bool isStreaming() const { return m_streaming; }

 private:
  const std::string m_name;
  MethodSet m_methods = MethodSet::ordinary();
  Gate m_gate;
  std::optional<uint64_t> m_body_limit;
  bool m_streaming = false;
};

/// A servlet that calls a function.
class SYLAR_API FunctionServlet final : public Servlet {
 public:
  using ptr = std::shared_ptr<FunctionServlet>;
  using callback =
      std::function<int32_t(std::shared_ptr<HttpRequest>, std::shared_ptr<HttpResponse>, std::shared_ptr<HttpSession>)>;

  explicit FunctionServlet(callback cb, MethodSet methods = MethodSet::ordinary());
  int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                 std::shared_ptr<HttpSession> session) override;

 private:
  const callback m_cb;
};

/// Answers 404 to all methods, before the body of the request has arrived, with a body that reveals nothing about the server.
class SYLAR_API NotFoundServlet final : public Servlet {
 public:
  using ptr = std::shared_ptr<NotFoundServlet>;

  explicit NotFoundServlet(const std::string& name = "NotFoundServlet");
  int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                 std::shared_ptr<HttpSession> session) override;
};

/// Makes or finds the servlet for one request. Source: sylar.
class SYLAR_API IServletCreator {
 public:
  using ptr = std::shared_ptr<IServletCreator>;
  virtual ~IServletCreator() = default;
  virtual Servlet::ptr get() const = 0;
  virtual std::string getName() const = 0;
};

/// Returns the same servlet for all requests.
class SYLAR_API HoldServletCreator final : public IServletCreator {
 public:
  explicit HoldServletCreator(Servlet::ptr servlet) : m_servlet(std::move(servlet)) {}
  Servlet::ptr get() const override { return m_servlet; }
  std::string getName() const override { return m_servlet->getName(); }

 private:
  const Servlet::ptr m_servlet;
};

/// Makes a new T for each request, for handlers that keep state in their members.
template <class T>
class SYLAR_API ServletCreator final : public IServletCreator {
 public:
  Servlet::ptr get() const override { return std::make_shared<T>(); }
  std::string getName() const override { return T().getName(); }
};

/// Finds the servlet for a path: the one of exactly this path, else the first whose glob matches, in the order in which the globs
/// were added, else the default one.
class SYLAR_API ServletDispatch : public Servlet {
 public:
  using ptr = std::shared_ptr<ServletDispatch>;

  /// Makes a dispatch whose default servlet is a NotFoundServlet.
  ServletDispatch();
  ~ServletDispatch() override;

  /// Passes the request to the servlet of its path, if that allows its method and its gate lets it in. It does so after the body
  /// has arrived, or before if that servlet is streaming.
  int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                 std::shared_ptr<HttpSession> session) override;

  /// Adds the servlet of `uri`, in place of one that was there. Null is a programmer error. Throws std::bad_alloc, and then
  /// nothing has changed. May suspend: no.
  void addServlet(const std::string& uri, Servlet::ptr servlet);
  void addServlet(const std::string& uri, FunctionServlet::callback cb);
  void addServlet(const std::string& uri, MethodSet methods, FunctionServlet::callback cb);
  void addServletCreator(const std::string& uri, IServletCreator::ptr creator);
  template <class T>
  void addServletCreator(const std::string& uri) {
    addServletCreator(uri, std::make_shared<ServletCreator<T>>());
  }

  /// Adds the servlet of all paths that match the shell pattern `uri`, in which * also stands for slashes. A pattern that was
  /// there already moves to the end of the order. Matching takes at most (bytes of the path) * (bytes of the pattern) steps.
  /// Source: fnmatch(3), without flags.
  void addGlobServlet(const std::string& uri, Servlet::ptr servlet);
  void addGlobServlet(const std::string& uri, FunctionServlet::callback cb);
  void addGlobServlet(const std::string& uri, MethodSet methods, FunctionServlet::callback cb);
  void addGlobServletCreator(const std::string& uri, IServletCreator::ptr creator);
  template <class T>
  void addGlobServletCreator(const std::string& uri) {
    addGlobServletCreator(uri, std::make_shared<ServletCreator<T>>());
  }

  /// Removes a servlet. Requests that have begun are still served by it.
  void delServlet(const std::string& uri);
  void delGlobServlet(const std::string& uri);

  Servlet::ptr getDefault() const;
  void setDefault(Servlet::ptr servlet);

  /// Returns the servlet that was added under exactly this path, or this pattern, or null if there is none.
  Servlet::ptr getServlet(const std::string& uri) const;
  Servlet::ptr getGlobServlet(const std::string& uri) const;
  /// Returns the servlet that answers the path `uri`.
  Servlet::ptr getMatchedServlet(const std::string& uri) const;

  /// Adds all paths, or all patterns, with their creators to `infos`.
  void listAllServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const;
  void listAllGlobServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const;

 protected:
  /// Makes a dispatch that has all its routes in common with `other`.
  explicit ServletDispatch(const ServletDispatch* other);

  /// Routes of a kind that a derived class knows and asks before paths and globs. They never change once they are published.
  using OtherRoutes = std::shared_ptr<const void>;
  /// Publishes what `edit` makes of the present ones, null at first. Changes nothing if `edit` throws. May suspend: no.
  void changeOthers(const std::function<OtherRoutes(const OtherRoutes& present)>& edit);

  /// The routes as one request sees them, from its beginning to its end.
  class SYLAR_API Snapshot {
   public:
    /// Both must outlive it.
    Snapshot(const ServletDispatch& dispatch, HttpSession& session);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

    const OtherRoutes& others() const;
    /// Passes the request to the servlet of its path, as ServletDispatch::handle() does.
    int32_t handle(std::shared_ptr<HttpRequest>&& request, std::shared_ptr<HttpResponse>&& response,
                   const std::shared_ptr<HttpSession>& session) const;

   private:
    HttpSession& m_session;
    uint64_t m_version;
    std::shared_ptr<const detail::RouteTable> m_table;
  };
  /// Passes the request to `servlet`, if that allows its method and its gate lets it in.
  static int32_t serve(Servlet& servlet, std::shared_ptr<HttpRequest>&& request, std::shared_ptr<HttpResponse>&& response,
                       const std::shared_ptr<HttpSession>& session);

 private:
  class Routes;
  explicit ServletDispatch(std::shared_ptr<Routes> routes);

  const std::shared_ptr<Routes> m_routes;
};

}  // namespace sylar::http
