// ttlkv: a key-value server for clients of Redis, whose keys expire on time.
//
//   ttlkv -c examples/ttlkv/config          then: redis-cli -p 6390
//
// README.md tells how a command travels from the socket to its reply.
#include <cstdio>
#include <exception>
#include <memory>

#include "engine.h"
#include "server.h"
#include "settings.h"
#include "sylar/application.h"
#include "sylar/log.h"
#include "sylar/sync/blocking.h"

static auto g_logger = SYLAR_LOG_NAME("ttlkv");

int main(int argc, char** argv) {
  const ttlkv::SystemWallClock clock;
  std::unique_ptr<ttlkv::Engine> engine;  // outlives the fibers of the application
  sylar::Application app;

  app.addServerType("ttlkv", [&](const sylar::ServerSetting&, const sylar::Application::Workers& workers) {
    if (engine == nullptr) engine = std::make_unique<ttlkv::Engine>(clock, ttlkv::readSettings());
    return std::make_shared<ttlkv::Server>(*engine, workers.process, workers.io, workers.accept);
  });
  ttlkv::onLiveSettings([&](const ttlkv::Options::Live& live) {
    if (engine != nullptr) engine->setLive(live);
  });
  app.onServerReady([&] {
    if (engine == nullptr) return;
    const size_t keys = sylar::blocking([&] { return engine->load(); });
    if (keys > 0) SYLAR_LOG_INFO(g_logger) << keys << " keys loaded from " << engine->options().snapshot_path;
    engine->expirer().start(*sylar::IOManager::GetThis());
  });
  app.onStop([&] {
    if (engine != nullptr) engine->expirer().stop();
  });
  const int status = app.main(argc, argv);  // returns when all connections have ended

  const bool served = status == sylar::Application::kEnded || status == sylar::Application::kTimedOut;
  if (!served || engine == nullptr || engine->options().snapshot_path.empty() || !engine->saves_at_end) return status;
  try {
    engine->save();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "no snapshot was written: %s\n", failure.what());
    return sylar::Application::kTimedOut;
  }
  return status;
}
