// One fiber that waits for several things: jobs, the word to stop, and silence.
#include "sylar/select.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <string>

#include "sylar/cancel.h"
#include "sylar/iomanager.h"
#include "sylar/sync/future.h"

namespace {

using namespace std::chrono_literals;

// [select]
/// Does the jobs that come, until somebody says that it is enough. Returns how many it has done.
int work(sylar::Channel<std::string>& jobs, sylar::Event& enough) {
  int done = 0;
  bool going = true;
  const auto got = [&](std::optional<std::string> job) { job ? void(++done) : void(going = false); };
  const auto nothing = [] { std::printf("no job for 20 ms\n"); };
  while (going) {
    going &=
        sylar::select(sylar::onReceive(jobs, got), sylar::onSet(enough, [&] { going = false; }), sylar::onTimeout(20ms, nothing));
  }
  return done;
}
// [select]

// [token]
/// Waits for a job until `stop` is told to stop, by any fiber or thread. Returns false then.
bool await(sylar::Channel<std::string>& jobs, const std::stop_token& stop) {
  return sylar::withCancel(stop, [&] { return jobs.receive().has_value(); });
}
// [token]

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "select");
  iom.schedule([] {
    sylar::Channel<std::string> jobs;
    sylar::Event enough;
    sylar::Future<int> done = sylar::go([&] { return work(jobs, enough); });
    for (const char* job : {"one", "two", "three"}) jobs.send(job);
    sylar::select(sylar::onReady(done, [] {}), sylar::onTimeout(200ms, [&] { enough.set(); }));
    std::printf("%d jobs\n", done.get());
    std::stop_source stop;
    sylar::Future<bool> more = sylar::go([&] { return await(jobs, stop.get_token()); });
    sylar::Fiber::YieldToReady();
    stop.request_stop();
    std::printf("%s\n", more.get() ? "one more" : "told to stop");
  });
}
