#include "tests/model/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "sylar/base/memory.h"
#include "sylar/check.h"
#include "sylar/fiber/context.h"
#include "sylar/fiber/stack.h"
#include "tests/model/engine.h"
#include "tests/model/memory.h"

namespace sylar::model {
namespace {

constexpr uint64_t kMaxSteps = 20'000;  // of one execution
constexpr int kPriorityChanges = 3;     // of a random run
constexpr size_t kScenario = 0;         // the thread that sets up and looks at the result
constexpr size_t kNobody = kMaxThreads;

/// Thrown through the scenario when the run has failed.
struct Failed {};

struct Message {
  uint64_t value;
  View view;  ///< what a thread knows that acquires it
};

struct Buffered {
  PlaceId place;
  Message message;
};

/// The next step of a thread.
struct Step {
  enum class Kind : uint8_t { kGoOn, kAccess, kDrain, kLock, kPause, kAwait };
  Kind kind = Kind::kGoOn;
  PlaceId place = kMaxPlaces;
  const std::function<bool()>* condition = nullptr;
  const char* what = "begin";
  Where where;
};

struct Thread {
  std::string name;
  std::function<void()> body;
  Context context;
  bool done = false;
  Step step;
  View view;
  std::vector<Buffered> buffer;  // kTso: stores that only this thread sees, oldest first
  uint64_t looked_at = 0;        // places, a bit each, since it last paused
  uint64_t paused_on = 0;        // the same, before that
  uint64_t last_pause = 0;       // the memory's version then
  uint64_t waits_for = 0;        // paused: another version than this
  std::function<void()> interrupt;
  bool interrupted = false;
  int priority = 0;
  ThreadMarks marks;
};

struct Choice {
  uint16_t taken;
  uint16_t among;
};

class Checker {
 public:
  Checker(const std::function<void()>& scenario, const Plan& plan);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  Outcome search();

  // ---- One execution. --------------------------------------------------------------------------------------------------------

  void add(std::string name, std::function<void()> body);
  void runThreads();
  [[noreturn]] void fail(std::string why);
  void trace(const std::string& line);
  void trace(const char* what, PlaceId place, uint64_t value, Where where);
  bool tracing() const { return m_tracing; }
  unsigned choose(unsigned n);
  /// Before each step of the calling thread: who goes on?
  void point(Step step);

  bool weak() const { return m_plan.memory == MemoryModel::kWeak; }
  bool running() const { return m_running; }
  Thread& me() { return m_threads[m_me]; }
  size_t self() const { return m_me; }

  PlaceId makePlace(uint64_t value);
  std::vector<Message>& history(PlaceId place) { return m_places[place]; }
  const Message& newest(PlaceId place) const { return m_places[place].back(); }

  /// The message that a load of the calling thread reads.
  const Message& read(PlaceId place, std::memory_order order);
  /// A store that everybody may see from here on. `after`: the store that a read-modify-write read.
  void publish(PlaceId place, uint64_t value, std::memory_order order, const Message* after);
  void buffer(PlaceId place, uint64_t value, std::memory_order order);
  void acquire(const Message& message, std::memory_order order);
  void drain();
  void barrierOfAll(Where where);
  void pause(Where where);
  void enter();  // the first function of a thread

 private:
  void reset();
  bool runOnce();
  bool nextSchedule();
  size_t whoGoesOn(size_t from);
  size_t pickRandomly(size_t candidates, size_t flushes);
  bool canGoOn(size_t thread) const;
  bool touches(const Thread& thread, const Thread& owner) const;
  void flushOldest(Thread& thread);
  Message messageOf(PlaceId place, uint64_t value, std::memory_order order, const Message* after);
  std::string everybodyWaits() const;
  void leaveTo(size_t next);
  [[noreturn]] void giveUp();

  const std::function<void()>& m_scenario;
  const Plan m_plan;
  StackPool m_pool;
  const ThreadLocals m_here = ThreadLocals::ofThisThread();
  std::array<Stack, kMaxThreads> m_stacks;
  uint64_t m_executions = 0;
  uint64_t m_all_steps = 0;

  std::vector<Choice> m_choices;  // of the present schedule: made in an earlier execution up to m_next_choice
  size_t m_next_choice = 0;
  std::mt19937_64 m_random;
  uint64_t m_longest = 1;

  std::array<Thread, kMaxThreads> m_threads;
  size_t m_count = 1;
  size_t m_me = kScenario;
  bool m_running = false;
  int m_preemptions = 0;
  uint64_t m_steps = 0;
  uint64_t m_version = 0;  // of the memory
  std::array<uint64_t, kPriorityChanges> m_changes{};
  std::vector<uint16_t> m_options;

  std::array<std::vector<Message>, kMaxPlaces> m_places;
  size_t m_place_count = 0;
  View m_order;  // of the seq_cst accesses: the newest seq_cst store to each place

  bool m_tracing = false;
  std::string m_failure;
  std::string m_trace;
};

Checker* g_checker = nullptr;

void enterThread() { g_checker->enter(); }

std::string_view baseName(const char* path) {
  const std::string_view whole = path;
  return whole.substr(whole.rfind('/') + 1);
}

Checker::Checker(const std::function<void()>& scenario, const Plan& plan)
    : m_scenario(scenario), m_plan(plan), m_random(plan.seed) {
  SYLAR_CHECK(g_checker == nullptr);
  g_checker = this;
  m_threads[kScenario].context.adoptThread();
}

Checker::~Checker() {
  for (const Stack& stack : m_stacks) {
    if (stack) m_pool.put(stack);
  }
  g_checker = nullptr;
}

// ---- The search. -------------------------------------------------------------------------------------------------------------

Outcome Checker::search() {
  bool failed = false;
  do {
    failed = !runOnce();
    if (!failed) m_longest = std::max(m_longest, m_steps);
  } while (!failed && nextSchedule());
  const uint64_t executions = m_executions;
  if (failed) {  // once more, with every step written down
    m_tracing = true;
    if (m_plan.random_runs > 0) m_random.seed(m_plan.seed + executions - 1);
    const std::string why = std::exchange(m_failure, "");
    if (runOnce() || m_failure != why) m_trace += "\n(the run could not be repeated: the scenario depends on something else)";
    m_failure =
        fmt::format("{}\nin execution {}{}:\n{}", why, executions,
                    m_plan.random_runs > 0 ? fmt::format(" (--random {} --seed {})", executions, m_plan.seed) : "", m_trace);
  }
  return {executions, m_all_steps, m_failure};
}

/// False: it failed.
bool Checker::runOnce() {
  reset();
  ++m_executions;
  try {
    m_scenario();
  } catch (const Failed&) {
  }
  m_all_steps += m_steps;
  return m_failure.empty();
}

void Checker::reset() {
  m_next_choice = 0;
  m_count = 1;
  m_me = kScenario;
  m_running = false;
  m_preemptions = 0;
  m_steps = 0;
  m_version = 0;
  m_place_count = 0;
  m_order = {};
  Thread& scenario = m_threads[kScenario];
  scenario.view = {};
  scenario.view.clock[kScenario] = 1;
  scenario.buffer.clear();
  scenario.marks.inside = 0;
  scenario.marks.left = nullptr;
  if (m_plan.random_runs > 0) {
    if (!m_tracing) m_random.seed(m_plan.seed + m_executions);
    m_choices.clear();
    for (uint64_t& change : m_changes) change = m_random() % m_longest + 1;
  }
}

/// The next schedule in depth-first order. False: all have been run.
bool Checker::nextSchedule() {
  if (m_plan.random_runs > 0) return m_executions < m_plan.random_runs;
  while (!m_choices.empty() && m_choices.back().taken + 1 == m_choices.back().among) m_choices.pop_back();
  if (m_choices.empty()) return false;
  ++m_choices.back().taken;
  return true;
}

unsigned Checker::choose(unsigned n) {
  SYLAR_CHECK(n > 0);
  if (n == 1) return 0;
  if (m_plan.random_runs > 0) return static_cast<unsigned>(m_random() % n);
  if (m_next_choice == m_choices.size()) m_choices.push_back({0, static_cast<uint16_t>(n)});
  const Choice choice = m_choices[m_next_choice++];
  SYLAR_CHECK(choice.among == n);  // else a run depends on something that is not a choice
  return choice.taken;
}

// ---- Threads. ----------------------------------------------------------------------------------------------------------------

void Checker::add(std::string name, std::function<void()> body) {
  SYLAR_CHECK(!m_running && m_count < kMaxThreads);
  Thread& thread = m_threads[m_count];
  thread.name = std::move(name);
  thread.body = std::move(body);
  thread.done = false;
  thread.step = {};
  thread.buffer.clear();
  thread.looked_at = 0;
  thread.last_pause = ~uint64_t{0};
  thread.interrupt = nullptr;
  thread.interrupted = false;
  thread.marks.inside = 0;
  thread.marks.left = nullptr;
  thread.priority = static_cast<int>(m_random() % 1000) + 1000;
  if (!m_stacks[m_count]) m_stacks[m_count] = m_pool.take(kDefaultStackSize);
  thread.context.make<enterThread>(m_stacks[m_count]);
  ++m_count;
}

void Checker::runThreads() {
  for (size_t i = 1; i < m_count; ++i) {
    m_threads[i].view = m_threads[kScenario].view;
    m_threads[i].view.clock[i] = 1;
  }
  ++m_threads[kScenario].view.clock[kScenario];
  m_running = true;
  const size_t first = whoGoesOn(kNobody);
  if (first != kScenario) {
    m_me = first;
    Context::switchTo(m_threads[kScenario].context, m_threads[first].context, m_here);
  }
  m_running = false;
  m_me = kScenario;
  for (size_t i = 1; i < m_count; ++i) {
    m_threads[kScenario].view.join(m_threads[i].view);
    if (m_threads[i].done) {
      m_threads[i].context.release();
      m_threads[i].body = nullptr;
    } else {  // it was left in the middle, by a failure: what its stack holds stays
      m_stacks[i] = {};
    }
    m_threads[i].interrupt = nullptr;
  }
  m_count = 1;
  if (!m_failure.empty()) throw Failed{};
}

void Checker::enter() {
  const size_t me = m_me;
  try {
    m_threads[me].body();
  } catch (const std::exception& error) {
    fail(fmt::format("uncaught exception: {}", error.what()));
  }
  m_threads[me].done = true;
  const size_t next = whoGoesOn(kNobody);
  m_me = next;
  Context::exitTo(m_threads[me].context, m_threads[next].context, m_here);
}

void Checker::leaveTo(size_t next) {
  const size_t from = m_me;
  m_me = next;
  Context::switchTo(m_threads[from].context, m_threads[next].context, m_here);
}

void Checker::fail(std::string why) {
  if (m_failure.empty()) m_failure = std::move(why);
  if (m_me == kScenario) throw Failed{};
  giveUp();
}

void Checker::giveUp() {
  const size_t from = m_me;
  m_me = kScenario;
  Context::exitTo(m_threads[from].context, m_threads[kScenario].context, m_here);
}

void Checker::point(Step step) {
  if (!m_running) return;
  const size_t me = m_me;
  Thread& thread = m_threads[me];
  if (thread.interrupt && !thread.interrupted && choose(2) == 1) {
    thread.interrupted = true;
    if (m_tracing) trace("-- a signal handler begins");
    thread.interrupt();
    if (m_tracing) trace("-- a signal handler ends");
  }
  thread.step = step;
  const size_t next = whoGoesOn(me);
  if (next == me) return;
  leaveTo(next);
}

bool Checker::canGoOn(size_t index) const {
  const Thread& thread = m_threads[index];
  if (thread.done) return false;
  switch (thread.step.kind) {
    case Step::Kind::kLock: return newest(thread.step.place).value == 0;
    case Step::Kind::kPause: return thread.waits_for != m_version;
    case Step::Kind::kAwait: return (*thread.step.condition)();
    default: return true;
  }
}

/// Whether it matters for the next step of `thread` what `owner` has in its buffer.
bool Checker::touches(const Thread& thread, const Thread& owner) const {
  return std::any_of(owner.buffer.begin(), owner.buffer.end(), [&](const Buffered& store) {
    if (store.place == thread.step.place) return true;
    if (thread.step.kind == Step::Kind::kPause && (thread.paused_on >> store.place & 1) != 0) return true;
    return (thread.step.kind == Step::Kind::kDrain || thread.step.kind == Step::Kind::kLock) &&
           std::any_of(thread.buffer.begin(), thread.buffer.end(), [&](const Buffered& own) { return own.place == store.place; });
  });
}

/// `from`: who could go on without a switch, or kNobody. Back to the scenario: all are done, or the run has failed.
size_t Checker::whoGoesOn(size_t from) {
  for (;;) {
    if (++m_steps > kMaxSteps) {
      m_failure = "the run does not end";
      return kScenario;
    }
    if (std::all_of(m_threads.begin() + 1, m_threads.begin() + static_cast<long>(m_count),
                    [](const Thread& t) { return t.done; })) {
      for (size_t i = 1; i < m_count; ++i) {
        while (!m_threads[i].buffer.empty()) flushOldest(m_threads[i]);
      }
      return kScenario;
    }
    m_options.clear();
    const bool stays = from != kNobody && canGoOn(from);
    const bool switches = !stays || m_plan.random_runs > 0 || m_preemptions < m_plan.preemptions;
    if (stays) m_options.push_back(static_cast<uint16_t>(from));
    for (size_t i = 1; switches && i < m_count; ++i) {
      if (i != from && canGoOn(i)) m_options.push_back(static_cast<uint16_t>(i));
    }
    const size_t candidates = m_options.size();
    for (size_t owner = 1; owner < m_count; ++owner) {
      if (m_threads[owner].buffer.empty()) continue;
      bool matters = candidates == 0;
      for (size_t i = 1; !matters && i < m_count; ++i) {
        if (i == owner || m_threads[i].done || (i != from && !switches)) continue;
        matters = touches(m_threads[i], m_threads[owner]);
      }
      if (matters) m_options.push_back(static_cast<uint16_t>(kMaxThreads + owner));
    }
    if (m_options.empty()) {
      m_failure = everybodyWaits();
      return kScenario;
    }
    const size_t pick = m_options[m_plan.random_runs > 0 ? pickRandomly(candidates, m_options.size() - candidates)
                                                         : choose(static_cast<unsigned>(m_options.size()))];
    if (pick >= kMaxThreads) {
      flushOldest(m_threads[pick - kMaxThreads]);
      continue;
    }
    if (stays && pick != from) ++m_preemptions;
    return pick;
  }
}

/// PCT: the thread of the highest priority runs; at a few random steps it gets the lowest.
size_t Checker::pickRandomly(size_t candidates, size_t flushes) {
  if (flushes > 0 && (candidates == 0 || m_random() % 4 == 0)) return candidates + m_random() % flushes;
  size_t best = 0;
  for (size_t i = 1; i < candidates; ++i) {
    if (m_threads[m_options[i]].priority > m_threads[m_options[best]].priority) best = i;
  }
  for (int i = 0; i < kPriorityChanges; ++i) {
    if (m_changes[static_cast<size_t>(i)] == m_steps) m_threads[m_options[best]].priority = i;
  }
  return best;
}

std::string Checker::everybodyWaits() const {
  std::string report = "nobody can go on:";
  for (size_t i = 1; i < m_count; ++i) {
    const Thread& thread = m_threads[i];
    if (thread.done) continue;
    report += fmt::format("\n  {} waits at {}:{}: {}", thread.name, baseName(thread.step.where.file), thread.step.where.line,
                          thread.step.what);
  }
  return report;
}

// ---- Memory. -----------------------------------------------------------------------------------------------------------------

PlaceId Checker::makePlace(uint64_t value) {
  SYLAR_CHECK(m_place_count < kMaxPlaces);
  const auto place = static_cast<PlaceId>(m_place_count++);
  m_places[place].clear();
  m_places[place].push_back({value, me().view});
  return place;
}

Message Checker::messageOf(PlaceId place, uint64_t value, std::memory_order order, const Message* after) {
  Message message{value, {}};
  Thread& thread = me();
  if (releases(order)) {
    message.view = thread.view;
    ++thread.view.clock[m_me];
  }
  if (after != nullptr) message.view.join(after->view);  // a release sequence goes on
  message.view.seen[place] = static_cast<int16_t>(m_places[place].size());
  return message;
}

void Checker::publish(PlaceId place, uint64_t value, std::memory_order order, const Message* after) {
  Message message = messageOf(place, value, order, after);
  auto& all = m_places[place];
  if (weak()) {
    const auto position = static_cast<int16_t>(all.size());
    me().view.seen[place] = position;
    if (order == std::memory_order_seq_cst) m_order.seen[place] = position;
    all.push_back(message);
  } else {
    all.back() = message;
  }
  ++m_version;
}

void Checker::buffer(PlaceId place, uint64_t value, std::memory_order order) {
  me().buffer.push_back({place, messageOf(place, value, order, nullptr)});
}

void Checker::flushOldest(Thread& thread) {
  m_places[thread.buffer.front().place].back() = thread.buffer.front().message;
  if (m_tracing) trace(fmt::format("-- a store of {} becomes visible", thread.name));
  thread.buffer.erase(thread.buffer.begin());
  ++m_version;
}

void Checker::drain() {
  while (!me().buffer.empty()) flushOldest(me());
}

/// Makes no happens-before: it orders what is seen, and no data that is not atomic.
void Checker::barrierOfAll(Where where) {
  point({Step::Kind::kDrain, kMaxPlaces, nullptr, "barrier of all", where});
  View all;
  for (size_t i = 0; i < m_count; ++i) {
    while (!m_threads[i].buffer.empty()) flushOldest(m_threads[i]);
    all.join(m_threads[i].view);
  }
  for (size_t i = 0; i < m_count; ++i) m_threads[i].view.seen = all.seen;
  if (m_tracing) trace("-- a barrier of all threads");
}

const Message& Checker::read(PlaceId place, std::memory_order order) {
  Thread& thread = me();
  thread.looked_at |= uint64_t{1} << place;
  if (!weak() || !m_running) {
    for (auto own = thread.buffer.rbegin(); own != thread.buffer.rend(); ++own) {
      if (own->place == place) return own->message;
    }
    return newest(place);
  }
  const auto& all = m_places[place];
  int oldest = thread.view.seen[place];
  if (order == std::memory_order_seq_cst) oldest = std::max<int>(oldest, m_order.seen[place]);
  const int last = static_cast<int>(all.size()) - 1;
  if (m_plan.random_runs == 0 && m_preemptions == m_plan.preemptions) oldest = last;
  const int picked = last - static_cast<int>(choose(static_cast<unsigned>(last - oldest + 1)));
  m_preemptions += picked != last;
  thread.view.seen[place] = static_cast<int16_t>(picked);
  return all[static_cast<size_t>(picked)];
}

void Checker::acquire(const Message& message, std::memory_order order) {
  if (acquires(order)) me().view.join(message.view);
}

void Checker::pause(Where where) {
  if (!m_running) return;
  Thread& thread = me();
  bool stale = false;
  for (uint64_t left = weak() ? thread.looked_at : 0; left != 0; left &= left - 1) {  // what was stored is seen in the end
    const auto place = static_cast<size_t>(std::countr_zero(left));
    const auto last = static_cast<int16_t>(m_places[place].size() - 1);
    stale = std::exchange(thread.view.seen[place], last) != last || stale;
  }
  thread.paused_on = std::exchange(thread.looked_at, 0);
  const bool changed = std::exchange(thread.last_pause, m_version) != m_version;  // since it began to look
  thread.waits_for = stale || changed ? ~uint64_t{0} : m_version;
  point({Step::Kind::kPause, kMaxPlaces, nullptr, "looks again when something changes", where});
}

// ---- The trace. --------------------------------------------------------------------------------------------------------------

void Checker::trace(const std::string& line) {
  if (m_tracing) m_trace += fmt::format("{:>4} {:<12} {}\n", m_steps, m_me == kScenario ? "scenario" : me().name, line);
}

void Checker::trace(const char* what, PlaceId place, uint64_t value, Where where) {
  if (!m_tracing) return;
  trace(fmt::format("{}:{:<4} {:<17} place {:<3} {:#x}", baseName(where.file), where.line, what, place, value));
}

Step accessTo(PlaceId place, const char* what, Where where) { return {Step::Kind::kAccess, place, nullptr, what, where}; }
/// An access by a locked instruction: it empties the store buffer first.
Step lockedAccessTo(PlaceId place, const char* what, Where where) { return {Step::Kind::kDrain, place, nullptr, what, where}; }

/// Reads the newest value and stores what `change` makes of it, in one step.
template <class Change>
uint64_t readModifyWrite(PlaceId place, std::memory_order order, const char* what, Where where, Change change) {
  Checker& checker = *g_checker;
  checker.point(lockedAccessTo(place, what, where));
  checker.drain();
  const Message& newest = checker.newest(place);
  const uint64_t before = newest.value;
  const uint64_t after = change(before);
  checker.acquire(newest, order);
  checker.publish(place, after, order, &newest);
  checker.trace(what, place, after, where);
  return before;
}

}  // namespace

Outcome explore(const std::function<void()>& scenario, const Plan& plan) { return Checker(scenario, plan).search(); }

void addThread(std::string name, std::function<void()> body) { g_checker->add(std::move(name), std::move(body)); }
void runThreads() { g_checker->runThreads(); }

void require(bool holds, const char* what, Where where) {
  if (holds) return;
  g_checker->trace(fmt::format("{}:{} does not hold: {}", baseName(where.file), where.line, what));
  g_checker->fail(fmt::format("does not hold: {} ({}:{})", what, baseName(where.file), where.line));
}

void await(const char* what, const std::function<bool()>& condition, Where where) {
  g_checker->point({Step::Kind::kAwait, kMaxPlaces, &condition, what, where});
  if (g_checker->tracing()) g_checker->trace(fmt::format("goes on: {}", what));
}

void mayBeInterruptedBy(std::function<void()> handler) { g_checker->me().interrupt = std::move(handler); }

void note(const std::string& text) { g_checker->trace(text); }
unsigned choose(unsigned n) { return g_checker->choose(n); }
uint32_t self() { return static_cast<uint32_t>(g_checker->self()); }

ThreadMarks& ModelMemory::marks() { return g_checker->me().marks; }

namespace access {

PlaceId make(uint64_t value) { return g_checker->makePlace(value); }

uint64_t load(PlaceId place, std::memory_order order, Where where) {
  Checker& checker = *g_checker;
  checker.point(accessTo(place, "load", where));
  const Message& message = checker.read(place, order);
  checker.acquire(message, order);
  checker.trace("load", place, message.value, where);
  return message.value;
}

void store(PlaceId place, uint64_t value, std::memory_order order, Where where) {
  Checker& checker = *g_checker;
  const bool buffered = !checker.weak() && checker.running() && order != std::memory_order_seq_cst;
  checker.point(buffered ? accessTo(place, "store", where) : lockedAccessTo(place, "store", where));
  if (buffered) {
    checker.buffer(place, value, order);
  } else {
    checker.drain();
    checker.publish(place, value, order, nullptr);
  }
  checker.trace(buffered ? "store (buffered)" : "store", place, value, where);
}

uint64_t exchange(PlaceId place, uint64_t value, std::memory_order order, Where where) {
  return readModifyWrite(place, order, "exchange", where, [value](uint64_t) { return value; });
}

uint64_t add(PlaceId place, uint64_t value, uint64_t mask, std::memory_order order, Where where) {
  return readModifyWrite(place, order, "add", where, [value, mask](uint64_t old) { return (old + value) & mask; });
}

uint64_t bitOr(PlaceId place, uint64_t value, std::memory_order order, Where where) {
  return readModifyWrite(place, order, "or", where, [value](uint64_t old) { return old | value; });
}

bool compareExchange(PlaceId place, uint64_t& expected, uint64_t desired, std::memory_order success, std::memory_order failure,
                     Where where) {
  Checker& checker = *g_checker;
  checker.point(lockedAccessTo(place, "compare-exchange", where));
  checker.drain();
  const Message& newest = checker.newest(place);
  if (newest.value == expected) {
    checker.acquire(newest, success);
    checker.publish(place, desired, success, &newest);
    checker.trace("compare-exchange", place, desired, where);
    return true;
  }
  const Message& read = checker.read(place, failure);
  const Message& seen = read.value != expected ? read : newest;  // a stale value that would do is no reason to fail
  checker.acquire(seen, failure);
  expected = seen.value;
  checker.trace("compare fails", place, expected, where);
  return false;
}

uint64_t peek(PlaceId place) { return g_checker->newest(place).value; }

void lock(PlaceId place, Where where) {
  Checker& checker = *g_checker;
  checker.point({Step::Kind::kLock, place, nullptr, "lock", where});
  checker.drain();
  const Message& newest = checker.newest(place);
  SYLAR_CHECK(newest.value == 0);
  checker.acquire(newest, std::memory_order_acquire);
  checker.publish(place, self() + 1, std::memory_order_acquire, &newest);
  checker.trace("lock", place, self() + 1, where);
}

bool tryLock(PlaceId place, Where where) {
  uint64_t free = 0;
  return compareExchange(place, free, self() + 1, std::memory_order_acquire, std::memory_order_relaxed, where);
}

void unlock(PlaceId place, Where where) {
  readModifyWrite(place, std::memory_order_release, "unlock", where, [where](uint64_t owner) {
    require(owner == self() + 1, "a lock is unlocked by its owner", where);
    return 0;
  });
}

void unlockByStore(PlaceId place, Where where) { store(place, 0, std::memory_order_release, where); }

void barrierOfAll(Where where) { g_checker->barrierOfAll(where); }

void pause(Where where) { g_checker->pause(where); }

}  // namespace access

void Unshared::onRead(Where where) {
  const Thread& thread = g_checker->me();
  require(thread.view.clock[m_writer] >= m_written, "a read comes after the write before it", where);
  m_read[self()] = thread.view.clock[self()];
}

void Unshared::onWrite(Where where) {
  const Thread& thread = g_checker->me();
  require(thread.view.clock[m_writer] >= m_written, "a write comes after the write before it", where);
  for (size_t i = 0; i < kMaxThreads; ++i) require(thread.view.clock[i] >= m_read[i], "a write comes after all reads", where);
  m_writer = self();
  m_written = thread.view.clock[self()];
}

}  // namespace sylar::model
