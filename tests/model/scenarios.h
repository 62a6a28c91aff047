// All scenarios of the core protocols, by name.
#pragma once

#include <vector>

namespace sylar::model {

struct Scenario {
  const char* name;
  void (*run)();
  bool large = false;  ///< too large for all orders: random runs only
};

std::vector<Scenario> waitScenarios();      ///< wait_word.h, waker.h (P1)
std::vector<Scenario> sleepScenarios();     ///< mailbox.h, spawn_queue.h, own_spawn_queue.h, idle.h (P2)
std::vector<Scenario> stopScenarios();      ///< idle.h: the end
std::vector<Scenario> fdScenarios();        ///< fd_entry.h (P3)
std::vector<Scenario> transferScenarios();  ///< fd_entry.h: operations in the kernel
std::vector<Scenario> lifeScenarios();      ///< fiber_requests.h, end_observers.h, run_queue.h
std::vector<Scenario> runQueueScenarios();  ///< run_queue.h, spawn_queue.h: out of turn
std::vector<Scenario> coreScenarios();      ///< core_pool.h
std::vector<Scenario> lendScenarios();      ///< thread_lending.h, maker_calls.h
std::vector<Scenario> timerScenarios();     ///< timer_state.h, run_waits.h
std::vector<Scenario> serveScenarios();     ///< front_news.h, timer_pass.h (P4)
std::vector<Scenario> syncScenarios();      ///< thread_wait.h, sync_steps.h, mutex_word.h, select_steps.h, exchange.h (P5)
std::vector<Scenario> lotScenarios();       ///< lot_steps.h (P6)

/// Those of the program.
std::vector<Scenario> scenarios();

}  // namespace sylar::model
