#include "api.h"

#include <functional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "request.h"
#include "status_page.h"
#include "sylar/http/http.h"
#include "sylar/http/percent.h"
#include "sylar/log.h"

namespace jobs {

static auto g_logger = SYLAR_LOG_NAME("jobs");

namespace {

using Json = nlohmann::json;
using sylar::http::FunctionServlet;
using sylar::http::HttpMethod;
using sylar::http::HttpRequest;
using sylar::http::HttpResponse;
using sylar::http::HttpStatus;
using sylar::http::MethodSet;

void answer(HttpResponse& response, const Json& json, HttpStatus status = HttpStatus::OK) {
  response.setStatus(status);
  response.setHeader("content-type", "application/json");
  response.setBody(json.dump() + "\n");
}

void refuse(HttpResponse& response, HttpStatus status, const std::string& why) { answer(response, {{"error", why}}, status); }

using Handle = std::function<void(HttpRequest&, HttpResponse&)>;

/// A handler whose exceptions are answers.
FunctionServlet::callback guarded(Handle handle) {
  return [handle = std::move(handle)](const auto& request, const auto& response, const auto& /*session*/) {
    try {
      handle(*request, *response);
    } catch (const BadRequest& mistake) {
      refuse(*response, HttpStatus::BAD_REQUEST, mistake.what());
    } catch (const StoreError& failure) {
      SYLAR_LOG_WARN(g_logger) << "answered 503: " << failure.what();
      response->setHeader("retry-after", "1");
      refuse(*response, HttpStatus::SERVICE_UNAVAILABLE, "the store cannot be reached; ask again");
    }
    return 0;
  };
}

/// The id in a path, between what is before and behind it.
std::string idOf(const HttpRequest& request, std::string_view before, std::string_view behind = "") {
  const std::string_view path = request.getPath();
  if (!path.starts_with(before) || !path.ends_with(behind) || path.size() < before.size() + behind.size()) {
    throw BadRequest("the path must be " + std::string(before) + "{id}" + std::string(behind));
  }
  const auto id = sylar::http::percentDecode(path.substr(before.size(), path.size() - before.size() - behind.size()));
  if (!id) throw BadRequest("the path is not encoded as a path must be");
  checkId(*id);
  return *id;
}

void changeJob(Jobs& jobs, const HttpRequest& request, HttpResponse& response) {
  const std::string id = idOf(request, "/jobs/");
  if (request.getMethod() == HttpMethod::PUT) {
    jobs.store().put({readJob(id, request.getBody())});
    answer(response, {{"id", id}});
    return;
  }
  const Cancelled found = jobs.cancel(id);
  if (found == Cancelled::kGone) return refuse(response, HttpStatus::NOT_FOUND, "there is no such job");
  answer(response, {{"id", id}, {"state", found == Cancelled::kWaiting ? "waiting" : "claimed"}});
}

void listDead(Jobs& jobs, const HttpRequest& request, HttpResponse& response) {
  size_t limit = 100;
  if (request.hasParam("limit") && (!request.checkGetParamAs("limit", limit) || limit < 1 || limit > 1000)) {
    throw BadRequest("limit must be from 1 to 1000");
  }
  Json letters = Json::array();
  for (const DeadLetter& each : jobs.store().deadLetters(limit)) {
    letters.push_back({{"id", each.id},
                       {"payload", Json::parse(each.payload, nullptr, false)},
                       {"due_ms", each.due.count() / 1000},
                       {"attempts", each.attempts},
                       {"error", each.error}});
  }
  answer(response, letters);
}

}  // namespace

void addServlets(sylar::http::ServletDispatch& servlets, Jobs& jobs, const Shown& shown) {
  const auto add = [&servlets](const char* path, MethodSet methods, Handle handle) {
    const bool glob = std::string_view(path).find('*') != std::string_view::npos;
    if (glob) return servlets.addGlobServlet(path, methods, guarded(std::move(handle)));
    servlets.addServlet(path, methods, guarded(std::move(handle)));
  };
  add("/jobs/*", {HttpMethod::PUT, HttpMethod::DELETE},
      [&jobs](auto& request, auto& response) { changeJob(jobs, request, response); });
  add("/jobs", {HttpMethod::POST}, [&jobs](auto& request, auto& response) {
    const std::vector<Job> all = readJobs(request.getBody());
    jobs.store().put(all);
    answer(response, {{"jobs", all.size()}});
  });
  add("/dead", {HttpMethod::GET}, [&jobs](auto& request, auto& response) { listDead(jobs, request, response); });
  add("/dead/*", {HttpMethod::POST}, [&jobs](auto& request, auto& response) {
    const std::string id = idOf(request, "/dead/", "/retry");
    if (!jobs.store().retry(id)) return refuse(response, HttpStatus::NOT_FOUND, "there is no such dead letter");
    answer(response, {{"id", id}});
  });
  add("/healthz", {HttpMethod::GET}, [](auto& /*request*/, auto& response) { answer(response, {{"alive", true}}); });
  add("/readyz", {HttpMethod::GET}, [&jobs](auto& /*request*/, auto& response) {
    const bool ready = jobs.ready();
    answer(response, {{"ready", ready}}, ready ? HttpStatus::OK : HttpStatus::SERVICE_UNAVAILABLE);
  });
  add("/drain", {HttpMethod::POST}, [&jobs](auto& /*request*/, auto& response) {
    jobs.drain();
    answer(response, {{"claimed", jobs.counts().claimed}});
  });
  const auto status = [&jobs, shown] { return statusOf(jobs, shown.replica, shown.store, shown.members()); };
  add("/status", {HttpMethod::GET}, [status](auto& /*request*/, auto& response) { answer(response, status()); });
  add("/", {HttpMethod::GET}, [status](auto& /*request*/, auto& response) {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.setBody(pageOf(status()));
  });
}

}  // namespace jobs
