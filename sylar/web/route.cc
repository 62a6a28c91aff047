#include <utility>

#include "sylar/http/http_session.h"
#include "sylar/web/route_state.h"

namespace sylar::http {

namespace {

/// The servlet of a route with the options of the route.
class RouteServlet final : public Servlet {
 public:
  RouteServlet(Servlet::ptr target, const RouteOptions& options) : Servlet(target->getName()), m_target(std::move(target)) {
    setMethods(MethodSet::all());  // the route has compared the method
    setGate(options.gate != nullptr ? options.gate : m_target->getGate());
    setStreaming(options.body ? options.body->is_streaming : m_target->isStreaming());
    const auto limit = options.body ? options.body->limit : m_target->getBodyLimit();
    if (limit) setBodyLimit(*limit);
  }
  int32_t handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) override {
    return m_target->handle(std::move(request), std::move(response), std::move(session));
  }

 private:
  const Servlet::ptr m_target;
};

}  // namespace

RouteEntryPtr detail::RouteState::entry(const RouteOptions& with) const {
  const auto method = pattern.method();
  return std::make_shared<RouteEntry>(RouteEntry{.pattern = pattern,
                                                 .methods = method ? MethodSet{*method} : target->getMethods(),
                                                 .servlet = std::make_shared<RouteServlet>(target, with),
                                                 .group = group});
}

void detail::RouteState::change(RouteOptions changed) {
  core.change([changed_entry = entry(changed)](PatternTable& table) { table.replace(changed_entry); });
  options = std::move(changed);
}

Route::Route(std::unique_ptr<detail::RouteState> state) : m_state(std::move(state)) {}

Route::~Route() = default;

Route& Route::body(Body body) {
  m_state->change({body, m_state->options.gate});
  return *this;
}

Route& Route::gate(Servlet::Gate gate) {
  m_state->change({m_state->options.body, std::move(gate)});
  return *this;
}

}  // namespace sylar::http
