// A dispatch whose routes are patterns with names, and middleware around them.
//
//   const auto router = std::make_shared<Router>();
//   router->get("/keys/{key}", [](HttpRequest& request, HttpResponse& response) {      // HEAD, too
//     response.text(find(request.getPathParam("key")));
//   });
//   router->put("/keys/{key}", store).body(Body::upTo(64 * 1024));
//   server->setServletDispatch(router);
//
// A pattern is "[METHOD ][host]/path", for example "GET example.com/files/{path...}":
//   - `{name}` matches one segment that is not empty, and `{name...}` at the end matches all that follows the '/' before it, which
//     may be nothing. A wildcard is a whole segment, and getPathParam(name) returns what it has matched.
//   - A '/' at the end matches all paths below, as `{name...}` does, and `{$}` at the end matches only the path with that '/'.
//   - GET includes HEAD. A pattern without a method matches GET, HEAD, POST, PUT, PATCH and DELETE, or the methods of its servlet;
//     when patterns are compared, it counts as one for all methods.
//   - A host is compared without case and without the port of the request. None matches any host.
//
// The most specific of the patterns that match a request has it, whatever the order in which they were added: "/a/b" goes before
// "/a/{x}", that before "/a/", and "GET /a" before "/a"; a pattern with a host goes before all without. Two patterns may not
// overlap without one being more specific, as "/a/{x}" and "/{x}/b" do. Source: Go 1.22, net/http.ServeMux.
//
// Paths are matched segment by segment and decoded once, so `%2F` separates no segments. Nothing else is done to them: neither "//"
// nor ".." is resolved, so a part of a path may be "..", and nothing is redirected to a path with a '/' at its end.
//
// A path that no pattern matches goes on to the exact paths, globs and default servlet of the ServletDispatch. One that some
// pattern matches does not. If none of these patterns has the method of the request, the answer is 405 with Allow, or for OPTIONS
// 200 with Allow. If the path has a '%' that begins no escape, it is 400. These answers and 404 read nothing of the body.
//
// Thread safety: any thread may add routes and middleware while the router serves, and each request sees it before or after a
// change. May suspend: no function except handle() of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sylar/api.h"
#include "sylar/http/http.h"
#include "sylar/http/servlet.h"

namespace sylar::http {

namespace detail {
class RouterCore;
struct RouteState;
}  // namespace detail

/// Goes on to the next middleware, or to the route.
using Next = std::function<void()>;
/// Runs around the answer to a request. It calls `next` once, in the same fiber and before it returns, or fills in the response
/// itself. What it does before `next` comes before the body of the request is read, and after the route was found. After `next`
/// the response is as the route has left it; a route with a session may have sent it.
using Middleware = std::function<void(HttpRequest&, HttpResponse&, const Next& next)>;

/// Which body a route takes. It is decided before a byte of the body is read, or `100 Continue` is sent.
struct Body {
  /// Refuses each request that has a body with 413.
  static constexpr Body none() { return {0, false}; }
  /// Has the whole body in the request when the handler is called. A body of more than `bytes` is refused with 413.
  static constexpr Body upTo(uint64_t bytes) { return {bytes, false}; }
  /// Calls the handler before the body has arrived, which it reads with HttpSession::readBody(). The limit is HttpLimits::max_body
  /// if none is given.
  static constexpr Body stream(std::optional<uint64_t> bytes = std::nullopt) { return {bytes, true}; }

  std::optional<uint64_t> limit;
  bool is_streaming;
};

/// What a route may say beside its pattern and its handler. What is not set is that of the servlet.
struct RouteOptions {
  std::optional<Body> body = {};  ///< up to HttpLimits::max_body if the route has no servlet of its own
  Servlet::Gate gate = {};        ///< see Servlet::setGate()
};

/// A route of a Router, which lives as long as that.
///
/// Thread safety: one thread at a time changes a route. Requests see it before or after a change, so while a router serves, give a
/// new route its options together with its handler. Both functions throw std::bad_alloc, and then nothing has changed.
class SYLAR_API Route {
 public:
  explicit Route(std::unique_ptr<detail::RouteState> state);
  ~Route();
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;

  Route& body(Body body);
  Route& gate(Servlet::Gate gate);

 private:
  const std::unique_ptr<detail::RouteState> m_state;
};

class SYLAR_API Router : public ServletDispatch {
 public:
  using ptr = std::shared_ptr<Router>;
  using Handler = std::function<void(HttpRequest&, HttpResponse&)>;

  static constexpr size_t kMostPatterns = 10'000;
  static constexpr size_t kMostSegments = 64;  ///< of one pattern

  Router();
  ~Router() override;

  /// Adds a route. A null handler is a programmer error. The callback is one of sylar's, which also gets the session. A servlet
  /// keeps its gate and what it says of the body; its methods count if the pattern has none.
  ///
  /// Throws std::invalid_argument if the pattern is malformed, or if it conflicts with another one: the message then names both
  /// patterns and a request that both match. Throws std::length_error beyond kMostPatterns, and std::bad_alloc. Nothing has
  /// changed then.
  Route& handle(std::string_view pattern, Handler handler, RouteOptions options = {});
  Route& handle(std::string_view pattern, FunctionServlet::callback handler, RouteOptions options = {});
  Route& handle(std::string_view pattern, Servlet::ptr servlet, RouteOptions options = {});

  /// These add a route for one method; get() adds it for HEAD as well. `path` may begin with a host. They throw as handle() does.
  template <class Target>
  Route& get(std::string_view path, Target&& target, RouteOptions options = {}) {
    return handle(join("GET ", path), std::forward<Target>(target), std::move(options));
  }
  template <class Target>
  Route& post(std::string_view path, Target&& target, RouteOptions options = {}) {
    return handle(join("POST ", path), std::forward<Target>(target), std::move(options));
  }
  template <class Target>
  Route& put(std::string_view path, Target&& target, RouteOptions options = {}) {
    return handle(join("PUT ", path), std::forward<Target>(target), std::move(options));
  }
  template <class Target>
  Route& patch(std::string_view path, Target&& target, RouteOptions options = {}) {
    return handle(join("PATCH ", path), std::forward<Target>(target), std::move(options));
  }
  template <class Target>
  Route& del(std::string_view path, Target&& target, RouteOptions options = {}) {
    return handle(join("DELETE ", path), std::forward<Target>(target), std::move(options));
  }

  /// Adds middleware inside of that which is there. It runs for all requests of the router, or of the group: the router's runs
  /// for exact paths, globs, 404, 405 and OPTIONS as well, and so does a group's, if the path begins with its prefix. It does not
  /// see what the protocol refuses itself, for example with 400, 413 or 431. Null is a programmer error.
  void use(Middleware middleware);

  /// Makes a group: a router whose patterns begin with `prefix`, and which has middleware of its own inside of that of this router.
  /// "/users" and "/users/{id}" are prefixes; an empty one only has middleware. In the group the path of a pattern may be empty.
  /// Patterns of all groups compete as if they were added here. Exact paths, globs and the default servlet are those of the
  /// router. The group lives as long as the router. Throws std::invalid_argument if the prefix is malformed, and std::bad_alloc.
  Router& group(std::string_view prefix);

  /// Answers a request, as a server or another dispatch asks it to.
  int32_t handle(std::shared_ptr<HttpRequest> request, std::shared_ptr<HttpResponse> response,
                 std::shared_ptr<HttpSession> session) override;

 private:
  Router(const Router& parent, std::string prefix, size_t index);
  static std::string join(std::string_view method, std::string_view path);

  const std::unique_ptr<detail::RouterCore> m_own_core;  // null in a group
  detail::RouterCore& m_core;
  const std::string m_prefix;
  const size_t m_group = 0;
};

}  // namespace sylar::http
