// The id of a request follows it into every fiber that works for it.
#include <cstdio>
#include <string>

#include "sylar/fiber_local.h"
#include "sylar/iomanager.h"
#include "sylar/sync/future.h"
#include "sylar/sync/task_group.h"

namespace {

// [local]
const sylar::FiberLocal<std::string> g_request_id(sylar::Inherit::kYes);

void log(const char* what) { std::printf("%s: %s\n", g_request_id->c_str(), what); }

void serve(const std::string& id) {
  *g_request_id = id;
  log("begins");
  sylar::go([] { log("a fiber of this request"); }).get();
}
// [local]

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "requests");
  iom.schedule([] {
    sylar::TaskGroup requests(1);  // one at a time
    for (const char* id : {"r-1", "r-2"}) requests.spawn([id] { serve(id); });
    requests.join();
  });
}
