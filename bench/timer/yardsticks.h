// The timers of other libraries behind the same face. libev and libuv bring their own clock: the benchmark's time reaches them
// only as delays, so their expiry is measured with everything due, and has no trace to compare.
#pragma once

#include <ev.h>
#include <uv.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <boost/asio.hpp>

namespace bench {

/// What timers call that fall due; on a real clock some do so in any scenario.
inline std::function<void(size_t)> g_fired = [](size_t) {};

/// A delay that keeps the order of the deadlines, but passes in 20 ms: for libraries whose clock is the real one.
constexpr int64_t kShrink = 3'000;
constexpr auto kShrunk = std::chrono::milliseconds(25);

class OfLibev {
 public:
  explicit OfLibev(size_t n) : m_loop(ev_loop_new(0)), m_timers(n) {
    for (auto& timer : m_timers)
      ev_init(&timer, [](struct ev_loop*, ev_timer* t, int) { g_fired(reinterpret_cast<size_t>(t->data)); });
    for (size_t i = 0; i < n; ++i) m_timers[i].data = reinterpret_cast<void*>(i);
  }
  ~OfLibev() { ev_loop_destroy(m_loop); }
  OfLibev(const OfLibev&) = delete;
  OfLibev& operator=(const OfLibev&) = delete;

  void arm(size_t i, int64_t delay_ns) {
    ev_timer_set(&m_timers[i], static_cast<double>(delay_ns) * 1e-9, 0.0);
    ev_timer_start(m_loop, &m_timers[i]);
  }
  void cancel(size_t i) { ev_timer_stop(m_loop, &m_timers[i]); }
  void move(size_t i, int64_t delay_ns) {
    m_timers[i].repeat = static_cast<double>(delay_ns) * 1e-9;
    ev_timer_again(m_loop, &m_timers[i]);
  }
  void expireAll() { ev_run(m_loop, EVRUN_NOWAIT); }

 private:
  struct ev_loop* m_loop;
  std::vector<ev_timer> m_timers;
};

class OfLibuv {
 public:
  explicit OfLibuv(size_t n) : m_timers(n) {
    uv_loop_init(&m_loop);
    for (size_t i = 0; i < n; ++i) {
      uv_timer_init(&m_loop, &m_timers[i]);
      m_timers[i].data = reinterpret_cast<void*>(i);
    }
  }
  ~OfLibuv() {
    for (auto& timer : m_timers) uv_close(reinterpret_cast<uv_handle_t*>(&timer), nullptr);
    uv_run(&m_loop, UV_RUN_DEFAULT);
    uv_loop_close(&m_loop);
  }
  OfLibuv(const OfLibuv&) = delete;
  OfLibuv& operator=(const OfLibuv&) = delete;

  void arm(size_t i, int64_t delay_ns) {
    uv_timer_start(
        &m_timers[i], [](uv_timer_t* t) { g_fired(reinterpret_cast<size_t>(t->data)); },
        static_cast<uint64_t>(delay_ns / 1'000'000), 0);
  }
  void cancel(size_t i) { uv_timer_stop(&m_timers[i]); }
  void move(size_t i, int64_t delay_ns) { arm(i, delay_ns); }
  void expireAll() { uv_run(&m_loop, UV_RUN_NOWAIT); }

 private:
  uv_loop_t m_loop;
  std::vector<uv_timer_t> m_timers;
};

class OfAsio {
 public:
  explicit OfAsio(size_t n) {
    m_timers.reserve(n);
    for (size_t i = 0; i < n; ++i) m_timers.emplace_back(m_context);
  }
  void arm(size_t i, int64_t delay_ns) {
    m_timers[i].expires_after(std::chrono::nanoseconds(delay_ns));
    m_timers[i].async_wait([i](const boost::system::error_code& error) {
      if (!error) g_fired(i);
    });
  }
  /// The handler of what was cancelled is run later; running it belongs to the cost.
  void cancel(size_t i) {
    m_timers[i].cancel();
    m_context.poll();
    m_context.restart();
  }
  void move(size_t i, int64_t delay_ns) {
    cancel(i);
    arm(i, delay_ns);
  }
  void expireAll() {
    m_context.poll();
    m_context.restart();
  }

 private:
  boost::asio::io_context m_context{1};
  std::vector<boost::asio::steady_timer> m_timers;
};

}  // namespace bench
