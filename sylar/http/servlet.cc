#include "sylar/http/servlet.h"

#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "sylar/base/check.h"
#include "sylar/http/http_session.h"

namespace sylar::http {

namespace {

/// Something that was added: a creator, and the servlet itself if it is always the same.
struct Route {
  IServletCreator::ptr creator;
  Servlet::ptr held;

  Servlet::ptr servlet() const { return held != nullptr ? held : creator->get(); }
};

using Glob = std::pair<std::string, Route>;

Route routeTo(Servlet::ptr servlet) {
  SYLAR_CHECK(servlet != nullptr);
  return {std::make_shared<HoldServletCreator>(servlet), servlet};
}

Route routeTo(IServletCreator::ptr creator) {
  SYLAR_CHECK(creator != nullptr);
  return {std::move(creator), nullptr};
}

uint64_t nextVersion() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

/// Never changed once it is published.
struct RouteTable {
  std::map<std::string, Route> exact;
  std::vector<Glob> globs;
  Route fallback;

  const Route& match(const std::string& path) const {
    if (const auto found = exact.find(path); found != exact.end()) return found->second;
    const auto glob = std::find_if(globs.begin(), globs.end(),
                                   [&](const Glob& one) { return ::fnmatch(one.first.c_str(), path.c_str(), 0) == 0; });
    return glob != globs.end() ? glob->second : fallback;
  }

  auto findGlob(const std::string& uri) const {
    return std::find_if(globs.begin(), globs.end(), [&](const Glob& one) { return one.first == uri; });
  }
  void setGlob(const std::string& uri, Route route) {
    eraseGlob(uri);
    globs.emplace_back(uri, std::move(route));
  }
  void eraseGlob(const std::string& uri) {
    if (const auto old = findGlob(uri); old != globs.end()) globs.erase(old);
  }
};

FunctionServlet::FunctionServlet(callback cb) : Servlet("FunctionServlet"), m_cb(std::move(cb)) { SYLAR_CHECK(m_cb != nullptr); }

int32_t FunctionServlet::handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
  return m_cb(std::move(request), std::move(response), std::move(session));
}

int32_t NotFoundServlet::handle(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) {
  response->setStatus(HttpStatus::NOT_FOUND);
  response->setBody("404 Not Found\n");
  return 0;
}

ServletDispatch::ServletDispatch() : Servlet("ServletDispatch"), m_table(std::make_shared<RouteTable>()) {
  setDefault(std::make_shared<NotFoundServlet>());
  setStreaming(true);  // whether the body is to be collected is up to the servlet that is found
}

// The table is moved out of the session while a servlet runs: that keeps it, with all its servlets, without counting, and a
// dispatch that is itself a servlet of another one finds the place free.
int32_t ServletDispatch::handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
  RouteCache routes = std::exchange(session->routes(), {});
  if (routes.version != m_version.load(std::memory_order_acquire)) {
    const Lock lock(m_mutex);
    routes = {m_version.load(std::memory_order_relaxed), m_table};
  }
  const Route& route = routes.table->match(request->getPath());
  const Servlet::ptr made = route.held != nullptr ? nullptr : route.creator->get();
  Servlet& servlet = made != nullptr ? *made : *route.held;
  if (const auto limit = servlet.getBodyLimit()) session->setMaxBody(*limit);
  if (!servlet.isStreaming() && !session->collectBody()) return -1;
  const int32_t result = servlet.handle(std::move(request), std::move(response), session);
  session->routes() = std::move(routes);
  return result;
}

void ServletDispatch::change(const std::function<void(RouteTable&)>& edit) {
  std::shared_ptr<const RouteTable> old;  // ends after the lock: with it go servlets
  const Lock lock(m_mutex);
  const auto changed = std::make_shared<RouteTable>(*m_table);
  edit(*changed);
  old = std::exchange(m_table, changed);
  m_version.store(nextVersion(), std::memory_order_release);
}

std::shared_ptr<const RouteTable> ServletDispatch::table() const {
  const Lock lock(m_mutex);
  return m_table;
}

void ServletDispatch::addServlet(const std::string& uri, Servlet::ptr servlet) {
  change([&](RouteTable& table) { table.exact[uri] = routeTo(servlet); });
}

void ServletDispatch::addServlet(const std::string& uri, FunctionServlet::callback cb) {
  addServlet(uri, std::make_shared<FunctionServlet>(std::move(cb)));
}

void ServletDispatch::addServletCreator(const std::string& uri, IServletCreator::ptr creator) {
  change([&](RouteTable& table) { table.exact[uri] = routeTo(creator); });
}

void ServletDispatch::addGlobServlet(const std::string& uri, Servlet::ptr servlet) {
  change([&](RouteTable& table) { table.setGlob(uri, routeTo(servlet)); });
}

void ServletDispatch::addGlobServlet(const std::string& uri, FunctionServlet::callback cb) {
  addGlobServlet(uri, std::make_shared<FunctionServlet>(std::move(cb)));
}

void ServletDispatch::addGlobServletCreator(const std::string& uri, IServletCreator::ptr creator) {
  change([&](RouteTable& table) { table.setGlob(uri, routeTo(creator)); });
}

void ServletDispatch::delServlet(const std::string& uri) {
  change([&](RouteTable& table) { table.exact.erase(uri); });
}

void ServletDispatch::delGlobServlet(const std::string& uri) {
  change([&](RouteTable& table) { table.eraseGlob(uri); });
}

Servlet::ptr ServletDispatch::getDefault() const { return table()->fallback.servlet(); }

void ServletDispatch::setDefault(Servlet::ptr servlet) {
  change([&](RouteTable& table) { table.fallback = routeTo(servlet); });
}

Servlet::ptr ServletDispatch::getServlet(const std::string& uri) const {
  const auto routes = table();
  const auto found = routes->exact.find(uri);
  return found != routes->exact.end() ? found->second.servlet() : nullptr;
}

Servlet::ptr ServletDispatch::getGlobServlet(const std::string& uri) const {
  const auto routes = table();
  const auto found = routes->findGlob(uri);
  return found != routes->globs.end() ? found->second.servlet() : nullptr;
}

Servlet::ptr ServletDispatch::getMatchedServlet(const std::string& uri) const { return table()->match(uri).servlet(); }

void ServletDispatch::listAllServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const {
  const auto routes = table();
  for (const auto& [uri, route] : routes->exact) infos[uri] = route.creator;
}

void ServletDispatch::listAllGlobServletCreator(std::map<std::string, IServletCreator::ptr>& infos) const {
  const auto routes = table();
  for (const auto& [uri, route] : routes->globs) infos[uri] = route.creator;
}

}  // namespace sylar::http
