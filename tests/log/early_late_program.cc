// Logs before main, in it, and after it.
#include <cstdlib>
#include <string>

#include "sylar/log.h"
#include "sylar/thread.h"

// Used before it is initialised, the way every translation unit's own logger may be. CD-L4
sylar::Logger::ptr g_logger = SYLAR_LOG_NAME("own");

namespace {

void say(const char* what) { SYLAR_LOG_INFO(SYLAR_LOG_NAME("x")) << what; }

struct Static {
  explicit Static(const char* name) : m_name(name) { say((m_name + " begins").c_str()); }
  ~Static() { say((m_name + " ends").c_str()); }
  const std::string m_name;
};
[[gnu::init_priority(102)]] const Static g_first("first static");
const Static g_last("last static");

[[gnu::constructor(101)]] void beforeConstructors() {
  SYLAR_LOG_ROOT()->setFormatter("%c %N %m%n");
  say("constructor function");
}

struct OfThread {
  ~OfThread() { say("thread_local ends"); }
  void touch() {}
};
thread_local OfThread t_of_thread;

}  // namespace

int main() {
  sylar::Thread::SetName("a name that does not fit into a short string");
  SYLAR_LOG_INFO(g_logger) << "main";
  t_of_thread.touch();
  std::atexit([] { say("exit handler"); });
}
