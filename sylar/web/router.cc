#include "sylar/http/router.h"

#include "sylar/check.h"
#include "sylar/http/http_session.h"
#include "sylar/web/path.h"
#include "sylar/web/pattern_table.h"
#include "sylar/web/route_state.h"
#include "sylar/web/router_core.h"

namespace sylar::http {

namespace {

class HandlerServlet final : public Servlet {
 public:
  explicit HandlerServlet(Router::Handler handler) : Servlet("HandlerServlet"), m_handler(std::move(handler)) {
    SYLAR_CHECK(m_handler != nullptr);
  }
  int32_t handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr) override {
    m_handler(*request, *response);
    return 0;
  }

 private:
  const Router::Handler m_handler;
};

void refuseMethod(MethodSet allowed, const HttpRequest& request, HttpResponse& response) {
  if (request.getMethod() != HttpMethod::OPTIONS) response.setStatus(HttpStatus::METHOD_NOT_ALLOWED);
  allowed.add(HttpMethod::OPTIONS);
  response.setHeader("allow", allowed.toString());
}

/// A request on its way through the middleware to its answer.
struct Passage {
  void go(size_t at) {
    if (at == chain.size()) return answer();
    (*chain[at])(request, response, [this, at] { go(at + 1); });  // small enough for a function that allocates nothing
  }

  const PatternTable::Chain& chain;
  HttpRequest& request;
  HttpResponse& response;
  const Next& answer;
};

}  // namespace

// ---- Registration. ----------------------------------------------------------------------------------------------------------

Router::Router()
    : m_own_core(std::make_unique<RouterCore>([this](const RouterCore::Edit& edit) {
        changeOthers([&edit](const OtherRoutes& present) {
          const auto* const old = static_cast<const PatternTable*>(present.get());
          auto table = old == nullptr ? std::make_shared<PatternTable>() : std::make_shared<PatternTable>(*old);
          edit(*table);
          return table;
        });
      })),
      m_core(*m_own_core) {}

Router::Router(const Router& parent, std::string prefix, size_t index)
    : ServletDispatch(&parent), m_core(parent.m_core), m_prefix(std::move(prefix)), m_group(index) {}

Router::~Router() = default;

std::string Router::join(std::string_view method, std::string_view path) { return std::string(method).append(path); }

Route& Router::handle(std::string_view pattern, Handler handler, RouteOptions options) {
  return handle(pattern, std::make_shared<HandlerServlet>(std::move(handler)), std::move(options));
}

Route& Router::handle(std::string_view pattern, FunctionServlet::callback handler, RouteOptions options) {
  return handle(pattern, std::make_shared<FunctionServlet>(std::move(handler)), std::move(options));
}

Route& Router::handle(std::string_view pattern, Servlet::ptr servlet, RouteOptions options) {
  SYLAR_CHECK(servlet != nullptr);
  const std::string_view before_path = pattern.substr(0, pattern.find('/'));
  auto state = std::make_unique<RouteState>(
      RouteState{m_core, Pattern(join(before_path, m_prefix).append(pattern.substr(before_path.size()))), std::move(servlet),
                 m_group, std::move(options)});
  const RouteEntryPtr entry = state->entry(state->options);
  const auto route = std::make_shared<Route>(std::move(state));
  RouterCore::Kept kept{route};
  m_core.change([&entry](PatternTable& table) { table.add(entry); });
  m_core.keep(std::move(kept));
  return *route;
}

void Router::use(Middleware middleware) {
  SYLAR_CHECK(middleware != nullptr);
  const auto shared = std::make_shared<const Middleware>(std::move(middleware));
  m_core.change([&](PatternTable& table) { table.use(m_group, shared); });
}

Router& Router::group(std::string_view prefix) {
  std::string whole = join(m_prefix, prefix);
  RouterCore::Kept kept{nullptr};
  std::shared_ptr<Router> made;
  m_core.change([&](PatternTable& table) {
    made.reset(new Router(*this, whole, table.addGroup(m_group, whole)));
    kept.front() = made;
  });
  m_core.keep(std::move(kept));
  return *made;
}

// ---- Answers. ---------------------------------------------------------------------------------------------------------------

int32_t Router::handle(HttpRequest::ptr request, HttpResponse::ptr response, HttpSession::ptr session) {
  const Snapshot routes(*this, *session);
  if (routes.others() == nullptr) return routes.handle(std::move(request), std::move(response), session);
  const auto& table = *static_cast<const PatternTable*>(routes.others().get());
  const CanonicalPath path(request->getPath());
  const FoundRoute found = table.find(*request, path.text());
  const PatternTable::Chain& chain = table.chain(found, path.text());
  const bool is_malformed = path.isMalformed();
  if (found.entry != nullptr && !is_malformed) found.entry->pattern.bind(path.text(), *request);

  const auto answer = [&](HttpRequest::ptr&& asked, HttpResponse::ptr&& given) {
    if (!found.is_path_known) return routes.handle(std::move(asked), std::move(given), session);
    if (found.entry != nullptr && !is_malformed) {
      return serve(*found.entry->servlet, std::move(asked), std::move(given), session);
    }
    if (is_malformed) {
      given->setStatus(HttpStatus::BAD_REQUEST);
    } else {
      refuseMethod(found.allowed, *asked, *given);
    }
    return -1;
  };
  if (chain.empty()) return answer(std::move(request), std::move(response));
  int32_t result = -1;
  const auto pass_on = [&] { result = answer(HttpRequest::ptr(request), HttpResponse::ptr(response)); };
  const Next last = std::ref(pass_on);
  Passage{chain, *request, *response, last}.go(0);
  return result;
}

}  // namespace sylar::http
