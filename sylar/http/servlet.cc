#include "sylar/http/servlet.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/check.h"
#include "sylar/http/glob.h"
#include "sylar/http/http_session.h"
#include "sylar/http/route_cache.h"
#include "sylar/http/session_control.h"

namespace sylar::http {

namespace {

/// A target of the dispatch: a creator, and the servlet itself if it is always the same.
struct Route {
  IServletCreator::ptr creator;
  Servlet::ptr held;

  Servlet::ptr servlet() const { return held != nullptr ? held : creator->get(); }
};

struct GlobRoute {
  Glob glob;
  Route route;
};

Route routeTo(Servlet::ptr servlet) {
  SYLAR_CHECK(servlet != nullptr);
  return {std::make_shared<HoldServletCreator>(servlet), servlet};
}

Route routeTo(IServletCreator::ptr creator) {
  SYLAR_CHECK(creator != nullptr);
  return {std::move(creator), nullptr};
}

/// Returns true if the request is one for handle(). If not, `response` holds the answer, or the body was refused, which
/// recvHead() answers. No byte of the body is taken before all other conditions hold.
bool isForHandle(const Servlet& servlet, const HttpRequest& request, HttpResponse& response, HttpSession& session) {
  MethodSet methods = servlet.getMethods();
  if (!methods.has(request.getMethod())) {
    if (request.getMethod() != HttpMethod::OPTIONS) response.setStatus(HttpStatus::METHOD_NOT_ALLOWED);
    methods.add(HttpMethod::OPTIONS);
    response.setHeader("allow", methods.toString());
    return false;
  }
  if (const Servlet::Gate& gate = servlet.getGate(); gate != nullptr && !gate(request, response)) return false;
  if (const auto limit = servlet.getBodyLimit()) session.setMaxBody(*limit);
  return servlet.isStreaming() || session.collectBody();
}

int32_t pass(Servlet& servlet, HttpRequest::ptr&& request, HttpResponse::ptr&& response, const HttpSession::ptr& session) {
  if (!isForHandle(servlet, *request, *response, *session)) return -1;
  return servlet.handle(std::move(request), std::move(response), session);
}

uint64_t nextVersion() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

/// The routes of a dispatch. It is never changed once it is published.
struct detail::RouteTable {
  std::map<std::string, Route> exact;
  std::vector<GlobRoute> globs;
  Route fallback;
  std::shared_ptr<const void> others;  // of a derived dispatch

  const Route& match(const std::string& path) const {
    if (const auto same = exact.find(path); same != exact.end()) return same->second;
    const auto found = std::find_if(globs.begin(), globs.end(), [&](const GlobRoute& one) { return one.glob.matches(path); });
    return found != globs.end() ? found->route : fallback;
  }

  int32_t handle(HttpRequest::ptr&& request, HttpResponse::ptr&& response, const HttpSession::ptr& session) const {
    const Route& route = match(request->getPath());
    const Servlet::ptr made = route.held != nullptr ? nullptr : route.creator->get();
    return pass(made != nullptr ? *made : *route.held, std::move(request), std::move(response), session);
  }

  auto findGlob(const std::string& uri) const {
    return std::find_if(globs.begin(), globs.end(), [&](const GlobRoute& one) { return one.glob.pattern() == uri; });
  }
  void setGlob(const std::string& uri, Route route) {
    eraseGlob(uri);
    globs.push_back({Glob(uri), std::move(route)});
  }
  void eraseGlob(const std::string& uri) {
    if (const auto old = findGlob(uri); old != globs.end()) globs.erase(old);
  }
};

/// Holds the published table.
class ServletDispatch::Routes {
 public:
  std::shared_ptr<const RouteTable> table() const {
    const Lock lock(m_mutex);
    return m_table;
  }
  void change(const std::function<void(RouteTable&)>& edit) {
    std::shared_ptr<const RouteTable> old;  // ends after the lock, since servlets may end with it
    const Lock lock(m_mutex);
    const auto changed = std::make_shared<RouteTable>(*m_table);
    edit(*changed);
    old = std::exchange(m_table, changed);
    m_version.store(nextVersion(), std::memory_order_release);
  }
  /// Sets `cache` to the table, unless it is that already.
  void renew(RouteCache& cache) const {
    if (cache.version == m_version.load(std::memory_order_acquire)) return;
    const Lock lock(m_mutex);
    cache = {m_version.load(std::memory_order_relaxed), m_table};
  }

 private:
  mutable OsMutex m_mutex;
  std::shared_ptr<const RouteTable> m_table SYLAR_GUARDED_BY(m_mutex) = std::make_shared<RouteTable>();
  std::atomic<uint64_t> m_version{0};  // of m_table; unique among all tables of a process
};

FunctionServlet::FunctionServlet(callback cb, MethodSet methods) : Servlet("FunctionServlet"), m_cb(std::move(cb)) {
  SYLAR_CHECK(m_cb != nullptr);
  setMethods(methods);
}

int32_t FunctionServlet::handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
  return m_cb(std::move(request), std::move(response), std::move(session));
}

NotFoundServlet::NotFoundServlet(const std::string& name) : Servlet(name) {
  setMethods(MethodSet::all());
  setStreaming(true);
}

int32_t NotFoundServlet::handle(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
  response->setStatus(HttpStatus::NOT_FOUND);
  response->setBody("404 Not Found\n");
  return 0;
}

ServletDispatch::ServletDispatch() : ServletDispatch(std::make_shared<Routes>()) {
  setDefault(std::make_shared<NotFoundServlet>());
}

ServletDispatch::ServletDispatch(const ServletDispatch* other) : ServletDispatch(other->m_routes) {}

// The servlet that is found decides which methods it allows, and whether it wants the body.
ServletDispatch::ServletDispatch(std::shared_ptr<Routes> routes) : Servlet("ServletDispatch"), m_routes(std::move(routes)) {
  setMethods(MethodSet::all());
  setStreaming(true);
}

ServletDispatch::~ServletDispatch() = default;

// The table is moved out of the session while a servlet runs. That keeps it alive with all its servlets, without reference
// counting, and a dispatch that is itself a servlet of another one finds the place free.
int32_t ServletDispatch::handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
  RouteCache routes = SessionControl::takeRoutes(*session);
  m_routes->renew(routes);
  const int32_t result = routes.table->handle(std::move(request), std::move(response), session);
  SessionControl::keepRoutes(*session, std::move(routes));
  return result;
}

// ---- For derived dispatches. ------------------------------------------------------------------------------------------------

ServletDispatch::Snapshot::Snapshot(const ServletDispatch& dispatch, HttpSession& session) : m_session(session) {
  RouteCache routes = SessionControl::takeRoutes(session);
  dispatch.m_routes->renew(routes);
  m_version = routes.version;
  m_table = std::move(routes.table);
}

ServletDispatch::Snapshot::~Snapshot() { SessionControl::keepRoutes(m_session, {m_version, std::move(m_table)}); }

const ServletDispatch::OtherRoutes& ServletDispatch::Snapshot::others() const { return m_table->others; }

int32_t ServletDispatch::Snapshot::handle(HttpRequest::ptr&& request, HttpResponse::ptr&& response,
                                          const HttpSession::ptr& session) const {
  return m_table->handle(std::move(request), std::move(response), session);
}

int32_t ServletDispatch::serve(Servlet& servlet, HttpRequest::ptr&& request, HttpResponse::ptr&& response,
                               const HttpSession::ptr& session) {
  return pass(servlet, std::move(request), std::move(response), session);
}

void ServletDispatch::changeOthers(const std::function<OtherRoutes(const OtherRoutes& present)>& edit) {
  m_routes->change([&](RouteTable& table) { table.others = edit(table.others); });
}

// ---- Registration. ----------------------------------------------------------------------------------------------------------

void ServletDispatch::addServlet(const std::string& uri, Servlet::ptr servlet) {
  m_routes->change([&](RouteTable& table) { table.exact[uri] = routeTo(servlet); });
}

void ServletDispatch::addServlet(const std::string& uri, FunctionServlet::callback cb) {
  addServlet(uri, std::make_shared<FunctionServlet>(std::move(cb)));
}

void ServletDispatch::addServlet(const std::string& uri, MethodSet methods, FunctionServlet::callback cb) {
  addServlet(uri, std::make_shared<FunctionServlet>(std::move(cb), methods));
}

void ServletDispatch::addServletCreator(const std::string& uri, IServletCreator::ptr creator) {
  m_routes->change([&](RouteTable& table) { table.exact[uri] = routeTo(creator); });
}

void ServletDispatch::addGlobServlet(const std::string& uri, Servlet::ptr servlet) {
  m_routes->change([&](RouteTable& table) { table.setGlob(uri, routeTo(servlet)); });
}

void ServletDispatch::addGlobServlet(const std::string& uri, FunctionServlet::callback cb) {
  addGlobServlet(uri, std::make_shared<FunctionServlet>(std::move(cb)));
}

void ServletDispatch::addGlobServlet(const std::string& uri, MethodSet methods, FunctionServlet::callback cb) {
  addGlobServlet(uri, std::make_shared<FunctionServlet>(std::move(cb), methods));
}

void ServletDispatch::addGlobServletCreator(const std::string& uri, IServletCreator::ptr creator) {
  m_routes->change([&](RouteTable& table) { table.setGlob(uri, routeTo(creator)); });
}

void ServletDispatch::delServlet(const std::string& uri) {
  m_routes->change([&](RouteTable& table) { table.exact.erase(uri); });
}

void ServletDispatch::delGlobServlet(const std::string& uri) {
  m_routes->change([&](RouteTable& table) { table.eraseGlob(uri); });
}

Servlet::ptr ServletDispatch::getDefault() const { return m_routes->table()->fallback.servlet(); }

void ServletDispatch::setDefault(Servlet::ptr servlet) {
  m_routes->change([&](RouteTable& table) { table.fallback = routeTo(servlet); });
}

Servlet::ptr ServletDispatch::getServlet(const std::string& uri) const {
  const auto routes = m_routes->table();
  const auto found = routes->exact.find(uri);
  return found != routes->exact.end() ? found->second.servlet() : nullptr;
}

Servlet::ptr ServletDispatch::getGlobServlet(const std::string& uri) const {
  const auto routes = m_routes->table();
  const auto found = routes->findGlob(uri);
  return found != routes->globs.end() ? found->route.servlet() : nullptr;
}

Servlet::ptr ServletDispatch::getMatchedServlet(const std::string& uri) const { return m_routes->table()->match(uri).servlet(); }

void ServletDispatch::listAllServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const {
  const auto routes = m_routes->table();
  for (const auto& [uri, route] : routes->exact) infos[uri] = route.creator;
}

void ServletDispatch::listAllGlobServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const {
  const auto routes = m_routes->table();
  for (const auto& [glob, route] : routes->globs) infos[glob.pattern()] = route.creator;
}

}  // namespace sylar::http
