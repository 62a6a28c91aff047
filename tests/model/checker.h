// A model checker for the core protocols: runs a scenario of a few threads again and again, each time with another order of
// their steps, until every order has been seen.
//
// The threads are fibers on one thread of the machine. Each access to shared memory (memory.h) is a step, before which any
// thread may go on; the search is depth first, by replay of the choices made so far. It is exhaustive up to a number of
// preemptions: switches away from a thread that could go on. Switches at a block or an end are free. With kWeak, a load
// that reads another than the newest store counts as one, too.
//
// Two memories:
//   kTso   x86: stores wait in a buffer of their thread; that they become visible is a choice of its own
//   kWeak  release and acquire as in C++20: a load may read any store that its thread does not know to be overwritten;
//          seq_cst accesses agree on one order. (A store never enters the past of another store to the same place.)
// In both, happens-before is tracked by the orders that the code names, and unordered accesses to a Var are a failure: so a
// weakened order is found even where x86 would forgive it.
//
// Found besides: a failed require(), an uncaught exception, threads that all wait forever (a lost wake-up), endless runs.
//
// Source: CHESS (Musuvathi, Qadeer 2007) for the bound; loom, Relacy for substitutable atomics; Burckhardt et al. 2010 for the
// random mode (PCT); Kang et al. 2017 for views.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sylar::model {

/// A place in the code: the caller's, as a default argument. (clang 14 cannot compile libstdc++'s std::source_location.)
struct Where {
  const char* file = "";
  unsigned line = 0;
  static constexpr Where current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) { return {file, line}; }
};

enum class MemoryModel { kTso, kWeak };

struct Plan {
  MemoryModel memory = MemoryModel::kTso;
  int preemptions = 2;
  uint64_t random_runs = 0;  ///< > 0: not exhaustive, but as many runs with random priorities
  uint64_t seed = 0;         ///< of the random runs
};

struct Outcome {
  uint64_t executions = 0;
  uint64_t steps = 0;
  std::string failure;  ///< empty: none. Else what went wrong, and every step of the run that showed it
};

/// Runs `scenario`, which makes its threads and calls runThreads(), until all orders have been seen or one fails.
Outcome explore(const std::function<void()>& scenario, const Plan& plan);

// ---- Within a scenario. ------------------------------------------------------------------------------------------------------

/// Adds a thread; before runThreads().
void addThread(std::string name, std::function<void()> body);

/// Runs all threads to their end. All of that happens before the scenario's next step.
void runThreads();

/// Ends the run as failed unless `holds`.
void require(bool holds, const char* what, Where where = Where::current());

/// Blocks the calling thread until `condition`, which depends on no step of its own: on variables of the scenario, and on places
/// that are written by read-modify-writes only (Atomic::peek). For what the kernel does.
void await(const char* what, const std::function<bool()>& condition, Where where = Where::current());

/// A signal handler for the calling thread: may run once, before any of its further steps, or not at all.
void mayBeInterruptedBy(std::function<void()> handler);

/// Adds a line to the trace.
void note(const std::string& text);

/// One of [0, n): every one is tried.
unsigned choose(unsigned n);

/// Which of the threads is calling; 0 = the scenario itself.
uint32_t self();

}  // namespace sylar::model
