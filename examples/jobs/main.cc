// jobs: durable timers over HTTP. Start as many replicas as you like on one store.
//
//   jobs -c examples/jobs/config
//   curl -X PUT http://127.0.0.1:8030/jobs/tea -d '{"in_ms": 3000, "payload": "it is ready"}'
//
// README.md tells what is promised, and how it is kept.
#include <curl/curl.h>

#include <memory>
#include <optional>

#include "api.h"
#include "dead_sweep.h"
#include "delivery.h"
#include "jobs.h"
#include "leadership.h"
#include "settings.h"
#include "status_page.h"
#include "sylar/application.h"
#include "sylar/log.h"
#include "sylar/sync/event.h"
#include "sylar/sync/task_group.h"

static auto g_logger = SYLAR_LOG_NAME("jobs");

static jobs::Handler makeHandler(const std::string& url) {
  if (url.empty()) return [](const jobs::Claim& job) { SYLAR_LOG_INFO(g_logger) << job.id << " is due: " << job.payload; };
  return [delivery = std::make_shared<jobs::Delivery>(url)](const jobs::Claim& job) { delivery->deliver(job); };
}

/// Deletes old dead letters. Without etcd no replica leads, and each does it.
static void sweep(jobs::Store& store, const jobs::Leadership* leadership) {
  const auto fence = [leadership] { return leadership != nullptr ? leadership->fence() : std::optional<uint64_t>(0); };
  jobs::DeadSweep(store, fence, jobs::readSweepOptions()).run();
}

int main(int argc, char** argv) {
  curl_global_init(CURL_GLOBAL_ALL);
  std::unique_ptr<jobs::Store> store;  // these outlive the fibers of the application
  std::unique_ptr<jobs::Jobs> all;
  std::unique_ptr<jobs::Leadership> leadership;  // null: no etcd was set
  sylar::Event ended;
  sylar::Application app;

  app.onServerReady([&] {
    store = jobs::makeStore();
    all =
        std::make_unique<jobs::Jobs>(*sylar::IOManager::GetThis(), *store, makeHandler(jobs::deliverUrl()), jobs::readOptions());
    leadership = jobs::makeLeadership([&] { return jobs::aboutOf(*all); });
    jobs::Shown shown{.replica = jobs::replicaName(), .store = jobs::storeName()};
    if (leadership) shown.members = [&] { return leadership->members(); };
    for (const auto& server : app.servers<sylar::http::HttpServer>()) {
      jobs::addServlets(*server->getServletDispatch(), *all, shown);
    }
  });
  app.onServerUp([&] {
    sylar::IOManager::GetThis()->schedule([&] {
      {
        sylar::TaskGroup others;
        others.spawn([&] { sweep(*store, leadership.get()); });
        if (leadership) others.spawn([&] { leadership->run(); });
        all->run();
        others.cancel();
      }
      ended.set();
    });
  });
  app.onStop([&] {
    all->drain();
    ended.wait();
  });
  return app.main(argc, argv);
}
