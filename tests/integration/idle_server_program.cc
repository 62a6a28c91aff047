// The server of the idle tests: an echo with an idle timeout, and HTTP whose keep-alive is as long. SIGUSR1: it tells what it
// did.
//
//   integration_idle_server_program TIMEOUT_MS [WORKERS]      prints the ports of the two; then lines `OPERATIONS GUARDS OPEN
//                                                             CLOSED`: on the queues of fibers' timeouts so far; on that of the
//                                                             timers, among them the guards of idle lists; connections; those
//                                                             closed for being idle
//
// SIGUSR2: it tells when its workers were late since the last such line, as `N FROM TO FROM TO ...`, in ns of CLOCK_MONOTONIC.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "sylar/base/os_mutex.h"
#include "sylar/clock.h"
#include "sylar/http/http_server.h"
#include "sylar/sched/scheduler_core.h"
#include "sylar/sched/worker.h"
#include "sylar/timer_stats.h"
#include "tests/support/queue_operations.h"

namespace {

class EchoServer : public sylar::TcpServer {
 public:
  using TcpServer::TcpServer;

 protected:
  void handleClient(sylar::Socket::ptr client) override {
    char buffer[1024];
    int n;
    while ((n = client->recv(buffer, sizeof buffer)) > 0 && client->send(buffer, static_cast<size_t>(n)) == n) {
    }
  }
};

/// When a worker was late: a timer asks each of them all the time.
class Lateness {
 public:
  explicit Lateness(sylar::IOManager& iom) : m_iom(iom) {
    m_timer = iom.addTimer(
        kEveryMs, [this] { ask(); }, true);
  }
  ~Lateness() { m_timer->cancel(); }
  Lateness(const Lateness&) = delete;
  Lateness& operator=(const Lateness&) = delete;
  void print() {
    std::vector<Late> late;
    {
      const sylar::Lock lock(m_mutex);
      late.swap(m_late);
    }
    std::printf("%zu", late.size());
    for (const auto& [from, to] : late) std::printf(" %ld %ld", from, to);
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  using Late = std::pair<int64_t, int64_t>;
  static constexpr uint64_t kEveryMs = 5;
  static constexpr int64_t kNoticedNs = 2'000'000;

  void ask() {
    const int64_t now = sylar::steadyClock().nowNs();
    const int64_t due = std::exchange(m_due, now + int64_t{kEveryMs} * 1'000'000);
    for (const auto& worker : sylar::detail::coreOf(m_iom).workers())
      m_iom.schedule([this, due = due == 0 ? now : due] { note(due); }, worker->threadId());
  }
  void note(int64_t due) {
    const int64_t now = sylar::steadyClock().nowNs();
    if (now - due < kNoticedNs) return;
    const sylar::Lock lock(m_mutex);
    m_late.emplace_back(due, now);
  }

  sylar::IOManager& m_iom;
  sylar::Timer::ptr m_timer;
  int64_t m_due = 0;
  sylar::OsMutex m_mutex;
  std::vector<Late> m_late SYLAR_GUARDED_BY(m_mutex);
};

unsigned portOf(const sylar::TcpServer& server) {
  return std::dynamic_pointer_cast<sylar::IPAddress>(server.getSocks().front()->getLocalAddress())->getPort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  const std::chrono::milliseconds timeout(std::atoi(argv[1]));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const size_t workers = argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 2;
  // 5 000 fibers at once that begin as threads of their own may take longer than the timeout.
  sylar::IOManager iom({.threads = workers, .use_caller = false, .name = "idle", .identity = sylar::FiberIdentity::kWorker});
  const auto echo = std::make_shared<EchoServer>(&iom, &iom, &iom);
  echo->setIdleTimeout(static_cast<uint64_t>(timeout.count()));
  const auto http = std::make_shared<sylar::http::HttpServer>(true, &iom, &iom, &iom);
  sylar::http::HttpLimits limits;
  limits.first_byte_timeout = limits.idle_timeout = timeout;
  http->setHttpLimits(limits);
  http->getServletDispatch()->addServlet("/", [](auto /*request*/, auto response, auto /*session*/) {
    response->setBody("hello\n");
    return 0;
  });
  for (const std::shared_ptr<sylar::TcpServer>& server : {std::shared_ptr<sylar::TcpServer>(echo), {http}}) {
    if (!server->bind(sylar::IPAddress::Create("127.0.0.1", 0)) || !server->start()) return 1;
  }
  Lateness lateness(iom);
  std::printf("%u %u\n", portOf(*echo), portOf(*http));
  std::fflush(stdout);
  for (int signal = 0; sigwait(&signals, &signal) == 0 && signal != SIGTERM;) {
    if (signal == SIGUSR2) {
      lateness.print();
      continue;
    }
    const auto open = echo->getCounts().open + http->getCounts().open;
    const auto all = sylar::test::queueOperations();  // first: then what is done now counts for no fiber
    const sylar::TimerStats timers = iom.getStats();
    const auto guards = timers.armed + timers.cancelled + timers.relinked;
    std::printf("%zu %zu %zu %zu\n", all - std::min(all, guards), guards, open, echo->getCounts().idle_closed);
    std::fflush(stdout);
  }
  echo->stop();
  http->stop();
}
