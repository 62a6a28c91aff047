#include "sylar/thread.h"

#include <sys/prctl.h>

#include <atomic>
#include <system_error>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/base/worker_local.h"
#include "sylar/clock.h"

namespace sylar {
namespace {

using detail::ofWorker;

constinit thread_local Thread* t_thread = nullptr;
constinit thread_local std::string* t_name = nullptr;

/// Keeps the name of a thread until that ends.
struct OwnName {
  OwnName() { t_name = &name; }
  ~OwnName() { t_name = nullptr; }
  std::string name;
};

void nameThisThread(std::string name) {
  if (detail::t_to_worker == 0) {
    static thread_local OwnName own;
    (void)&own;
  } else if (ofWorker(t_name) == nullptr) {
    ofWorker(t_name) = new std::string;  // for as long as the worker's thread lives
  }
  std::string& kept = *ofWorker(t_name);
  kept = std::move(name);
  char shown[16]{};
  kept.copy(shown, sizeof shown - 1);
  sys::call(SYS_prctl, PR_SET_NAME, shown);
}

}  // namespace

struct Thread::Start {
  Thread* thread;
  std::function<void()> cb;
  std::string name;  // the thread's copy, made here because the new thread could not report a lack of memory
  std::atomic<uint32_t> running{0};
};

Thread::Thread(std::function<void()> cb, const std::string& name) : m_name(name.empty() ? "UNKNOW" : name) {
  Start start{this, std::move(cb), m_name, {}};
  const int error = sys::createThread(&m_thread, nullptr, &Thread::main, &start);
  if (error != 0) throw std::system_error(error, std::generic_category(), "sylar::Thread " + m_name);
  m_joinable = true;
  while (start.running.load(std::memory_order_acquire) == 0) sys::futexWait(start.running, 0, kNever);
}

Thread::~Thread() {
  if (m_joinable) ::pthread_detach(m_thread);
}

void* Thread::main(void* arg) {
  auto* start = static_cast<Start*>(arg);
  Thread* thread = start->thread;
  t_thread = thread;
  thread->m_id = sys::threadId();
  nameThisThread(std::move(start->name));
  const std::function<void()> cb = std::move(start->cb);
  start->running.store(1, std::memory_order_release);
  sys::futexWake(start->running, 1);  // only the address is used: `start` may be gone
  cb();
  t_thread = nullptr;  // which may be gone before this thread is, if nobody joins it
  return nullptr;
}

void Thread::join() {
  if (!std::exchange(m_joinable, false)) return;
  ::pthread_join(m_thread, nullptr);
}

Thread* Thread::GetThis() { return detail::ofWorker(t_thread); }
const std::string& Thread::GetName() {
  static const std::string& s_unknown = *new std::string("UNKNOW");
  const std::string* const name = detail::ofWorker(t_name);
  return name != nullptr ? *name : s_unknown;
}
void Thread::SetName(const std::string& name) {
  if (name.empty()) return;
  nameThisThread(name);
}

}  // namespace sylar
