#include "sylar/thread.h"

#include <atomic>
#include <system_error>
#include <utility>

#include "sylar/base/sys.h"
#include "sylar/clock.h"

namespace sylar {
namespace {

thread_local Thread* t_thread = nullptr;
thread_local std::string t_name = "UNKNOW";

void nameThisThread(std::string name) {
  t_name = std::move(name);
  ::pthread_setname_np(::pthread_self(), t_name.substr(0, 15).c_str());
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

Thread* Thread::GetThis() { return t_thread; }
const std::string& Thread::GetName() { return t_name; }
void Thread::SetName(const std::string& name) {
  if (name.empty()) return;
  nameThisThread(name);
}

}  // namespace sylar
