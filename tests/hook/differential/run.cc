#include "tests/hook/differential/run.h"

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <optional>

#include "tests/support/thread_state.h"

namespace sylar::test::differential {
namespace {

/// A step on its own thread or fiber.
struct Job {
  Work work;
  std::atomic<bool> begun{false};
  std::atomic<bool> done{false};
  pid_t thread = 0;
  int listener = -1;  ///< the object to which it connects
  Fiber::ptr fiber;
  std::thread runs_on;
};

/// A number in the table: which open file it stands for.
struct Slot {
  int fd;
  int object;  ///< a pair of ends
  int end;     ///< 0 or 1
  Kind kind;
  int mark = 1;  ///< SO_RCVLOWAT
};

bool reads(Op op) { return op >= Op::k_read && op <= Op::k_recvmsg; }
bool writes(Op op) { return op >= Op::k_write && op <= Op::k_sendrights; }
bool waitsForEvents(Op op) { return op == Op::k_poll || op == Op::k_select || op == Op::k_epoll; }
bool makes(Op op) {
  return op == Op::k_create || op == Op::k_dup || op == Op::k_connect || op == Op::k_accept || op == Op::k_pass;
}

class Runner {
 public:
  Runner(const Plan& plan, const Mode& mode, const Transcript* script, std::chrono::milliseconds patience)
      : m_plan(plan), m_mode(mode), m_script(script), m_patience(patience), m_outcomes(plan.size()) {}

  Transcript run() {
    for (size_t i = 0; i < m_plan.size() && !m_stuck; ++i) take(static_cast<int>(i));
    end();
    return std::move(m_outcomes);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void take(int index) {
    const Step& step = m_plan[static_cast<size_t>(index)];
    if (m_script != nullptr ? !(*m_script)[static_cast<size_t>(index)].taken : !allowed(step)) return;
    if (m_script != nullptr && !possible(step)) {  // what made its descriptor gave something else; that shows
      m_stuck = true;
      return;
    }
    m_outcomes[static_cast<size_t>(index)].taken = true;
    begin(step, index);
    await(index);
    for (auto one = m_under_way.begin(); one != m_under_way.end();) {
      if (!(*one)->done.load(std::memory_order_acquire)) {
        ++one;
        continue;
      }
      ended(**one, index);
      one = m_under_way.erase(one);
    }
  }

  // --- What may be done.

  /// Returns true if the slots are open, or free, as the step needs them.
  bool possible(const Step& step) const {
    if (step.op == Op::k_create) {
      return !m_slots[step.slot] && !m_slots[step.other] && step.slot != step.other;
    }
    if (!m_slots[step.slot]) return false;
    if (makes(step.op)) return !m_slots[step.other];
    return (step.op != Op::k_dup2 && step.op != Op::k_poll && step.op != Op::k_reconnect) || m_slots[step.other];
  }

  /// Returns true if the outcome is certain with libc, and the same with the hooks.
  bool allowed(const Step& step) const {
    if (!possible(step) || m_under_way.size() == kActors) return false;
    for (const auto& one : m_under_way) {
      if (makes(one->work.step.op) && one->work.step.other == step.other && makes(step.op)) return false;
    }
    if (step.op == Op::k_create) return true;
    const Slot& slot = *m_slots[step.slot];
    const bool is_listener = listens(slot.kind);
    const bool queue = slot.kind == Kind::kPipe || slot.kind == Kind::kFifo;
    switch (step.op) {
      // Deviation: a close or dup2 wakes those who wait for the number. They are the number's, not the open file's.
      case Op::k_close: return !isUsed(step.slot) && !raceForErrorOf(slot);
      case Op::k_dup2: return !isUsed(step.other) && step.slot != step.other && !raceForErrorOf(*m_slots[step.other]);
      case Op::k_nonblock: return !isBeingConnected(slot);
      case Op::k_connect: return is_listener && !isConnectedTo(slot);
      case Op::k_reconnect:
        return isSocket(slot.kind) && !is_listener && listens(m_slots[step.other]->kind) &&
               !isConnectedTo(*m_slots[step.other]) && !isWaitedFor(step.slot, false);
      case Op::k_accept: return is_listener && !isWaitedFor(step.slot, true);
      // Deviation: a mark that is set through a copy of the descriptor is not seen.
      case Op::k_mark:
        return isSocket(slot.kind) && isStream(slot.kind) && !is_listener && copiesOf(slot) == 1 && !isUsed(step.slot) &&
               step.size < 200;
      case Op::k_timeout: return isSocket(slot.kind);
      // Deviation: a connect that asks again sees that its listener is shut down.
      case Op::k_shutdown: return isSocket(slot.kind) && slot.kind != Kind::kUnixListener;
      // One who waits to read is about to take what has come.
      case Op::k_available: return !is_listener && slot.kind != Kind::kEventfd && !isWaitedFor(step.slot, true);
      case Op::k_drain:
        return !is_listener && slot.kind != Kind::kEventfd && !isWaitedFor(step.slot, true) && !(queue && slot.end == 1);
      default: break;
    }
    if (waitsForEvents(step.op)) {
      // Those who wait for the same thing are a race.
      if (step.op == Op::k_poll && (step.slot == step.other || isWaitedFor(step.other, true))) return false;
      return !isWaitedFor(step.slot, true) && !isWaitedFor(step.slot, false);
    }
    if ((reads(step.op) || writes(step.op)) && isBeingConnected(slot)) return false;
    if (reads(step.op)) {
      // Deviation: a receive that wants fewer bytes than the mark, or none from TCP, ends in the kernel when anything wakes it.
      if (step.size < slot.mark && (slot.mark > 1 || slot.kind == Kind::kTcp)) return false;
      if (slot.kind == Kind::kEventfd && (step.op != Op::k_read)) return false;
      // A writer on AF_UNIX goes on in the kernel when a quarter is in use, and in the hooks when there is any room. So it is only
      // made room for by a drain, which waits for it.
      return !is_listener && !isWaitedFor(step.slot, true) && !isWaitedForAtPeer(slot, false);
    }
    if (writes(step.op)) {
      // Deviation: a write to an eventfd that is nearly full blocks the thread. Small ones never fill it.
      if (slot.kind == Kind::kEventfd) return step.op == Op::k_write;
      // A long write and a reader who is there already take turns as they please.
      if (step.size > 500 && isWaitedForAtPeer(slot, true)) return false;
      return !is_listener && !isWaitedFor(step.slot, false) && (queue || !isWaitedForByWriterOf(slot));
    }
    return true;
  }

  bool isUsed(int slot) const {
    return std::ranges::any_of(m_under_way, [slot](const auto& one) {
      const Step& step = one->work.step;
      return step.slot == slot || (step.other == slot && (step.op == Op::k_poll || step.op == Op::k_dup2));
    });
  }
  /// Returns true if a call that is under way connects to this listener. Several that wait for room are a race.
  bool isConnectedTo(const Slot& listener) const {
    return std::ranges::any_of(m_under_way, [&](const auto& one) {
      const Step& step = one->work.step;
      return (step.op == Op::k_connect || step.op == Op::k_reconnect) && one->listener == listener.object;
    });
  }
  /// Returns true if a call that is under way connects this socket again. Deviation: its flags then have O_NONBLOCK at times.
  bool isBeingConnected(const Slot& slot) const {
    return std::ranges::any_of(m_under_way, [&](const auto& one) {
      const auto& at = m_slots[one->work.step.slot];
      return one->work.step.op == Op::k_reconnect && at && at->object == slot.object && at->end == slot.end;
    });
  }
  /// Returns true if a reader and a writer wait at the peer. When this end is closed, one of them takes the error.
  bool raceForErrorOf(const Slot& slot) const { return isWaitedForAtPeer(slot, true) && isWaitedForAtPeer(slot, false); }
  int copiesOf(const Slot& slot) const {
    return static_cast<int>(std::ranges::count_if(
        m_slots, [&](const auto& one) { return one && one->object == slot.object && one->end == slot.end; }));
  }
  /// Returns true if a call that is under way waits to read from (or to write to) this end, by whichever number.
  bool isWaitedForAt(int object, int end, bool to_read) const {
    return std::ranges::any_of(m_under_way, [&](const auto& one) {
      const Step& step = one->work.step;
      const auto at = [&](int index) { return m_slots[index] && m_slots[index]->object == object && m_slots[index]->end == end; };
      if (waitsForEvents(step.op)) return at(step.slot) || (step.op == Op::k_poll && at(step.other));
      const bool reading = reads(step.op) || step.op == Op::k_accept || step.op == Op::k_drain;
      return at(step.slot) && reading == to_read;
    });
  }
  bool isWaitedFor(int slot, bool to_read) const { return isWaitedForAt(m_slots[slot]->object, m_slots[slot]->end, to_read); }
  bool isWaitedForAtPeer(const Slot& slot, bool to_read) const { return isWaitedForAt(slot.object, 1 - slot.end, to_read); }
  bool isWaitedForByWriterOf(const Slot& slot) const { return isWaitedForAt(slot.object, slot.end, false); }

  // --- Begin and end.

  void begin(const Step& step, int index) {
    auto job = std::make_shared<Job>();
    job->work.step = step;
    job->work.index = index;
    if (step.op != Op::k_create) {
      const Slot& slot = *m_slots[step.slot];
      job->work.step.kind = slot.kind;
      job->work.fd = slot.fd;
      job->work.tells_flags = step.op == Op::k_reconnect || !isBeingConnected(slot);
      job->work.other = m_slots[step.other] ? m_slots[step.other]->fd : -1;
      if (step.op == Op::k_drain) job->work.until = writerTo(slot);
      if (step.op == Op::k_connect) job->listener = slot.object;
      if (step.op == Op::k_reconnect) job->listener = m_slots[step.other]->object;
    }
    const auto body = [job, mode = m_mode] {
      job->thread = threadId();
      if (mode.workers != nullptr) {
        set_hook_enable(true);
        job->fiber = Fiber::GetThis();
      }
      job->begun.store(true, std::memory_order_release);
      perform(job->work, mode.make, mode.call);
      job->done.store(true, std::memory_order_release);
    };
    m_under_way.push_back(job);
    m_jobs.push_back(job);
    if (m_mode.workers != nullptr) {
      m_mode.workers->place(body);
    } else {
      job->runs_on = std::thread(body);
    }
  }

  const std::atomic<bool>* writerTo(const Slot& slot) const {
    for (const auto& one : m_under_way) {
      const auto& at = m_slots[one->work.step.slot];
      if (writes(one->work.step.op) && at && at->object == slot.object && at->end == 1 - slot.end) return &one->done;
    }
    return nullptr;
  }

  bool isSettled(const Job& job) const {
    if (job.done.load(std::memory_order_acquire)) return true;
    if (!job.begun.load(std::memory_order_acquire)) return false;
    return m_mode.workers != nullptr ? stateOf(*job.fiber) == FiberState::kParked : stateOfThread(job.thread) == 'S';
  }

  /// Returns true if the call ends by itself, so that nothing is begun before.
  static bool isTimed(const Job& job) {
    const Step& step = job.work.step;
    if (waitsForEvents(step.op)) return step.timeout >= 0;
    if (step.op == Op::k_drain || step.op == Op::k_pass || step.op == Op::k_create) return true;
    if (step.op == Op::k_connect) return step.kind == Kind::kListener;
    timeval in{}, out{};
    socklen_t size = sizeof in;
    ::getsockopt(job.work.fd, SOL_SOCKET, SO_RCVTIMEO, &in, &size);
    ::getsockopt(job.work.fd, SOL_SOCKET, SO_SNDTIMEO, &out, &size);
    return ((reads(step.op) || step.op == Op::k_accept) && in.tv_usec != 0) ||
           ((writes(step.op) || step.op == Op::k_reconnect) && out.tv_usec != 0);
  }

  /// Waits until all is settled. With a script, all that ended in the first run during this step must also end.
  void await(int index) {
    const auto until = Clock::now() + m_patience;
    const bool timed = m_script == nullptr && isTimed(*m_under_way.back());
    const auto must_end = [&](const Job& job) {
      if (m_script != nullptr) return (*m_script)[static_cast<size_t>(job.work.index)].ended_at == index;
      return timed && &job == m_under_way.back().get();
    };
    const auto through = [&](const auto& job) {
      return job->done.load(std::memory_order_acquire) || (!must_end(*job) && isSettled(*job));
    };
    // The newest is asked first: it may wake the others. They may wake each other, so all are asked twice.
    for (int settled = 0; settled < 2;) {
      settled = std::all_of(m_under_way.rbegin(), m_under_way.rend(), through) ? settled + 1 : 0;
      if (settled > 0) continue;
      if (Clock::now() > until) {
        m_stuck = true;
        return;
      }
      std::this_thread::yield();
    }
  }

  void ended(Job& job, int index) {
    Outcome& outcome = m_outcomes[static_cast<size_t>(job.work.index)];
    outcome.ended_at = index;
    outcome.gave = job.work.gave;
    const Step& step = job.work.step;
    if (step.op == Op::k_create) {
      const int object = m_objects++;
      if (job.work.made[0] >= 0) m_slots[step.slot] = Slot{job.work.made[0], object, 0, step.kind};
      if (job.work.made[1] >= 0) m_slots[step.other] = Slot{job.work.made[1], object, 1, step.kind};
    } else if (step.op == Op::k_close) {
      m_slots[step.slot].reset();
    } else if (step.op == Op::k_dup2) {
      const int fd = m_slots[step.other]->fd;
      m_slots[step.other] = m_slots[step.slot];
      m_slots[step.other]->fd = fd;
    } else if (step.op == Op::k_mark) {
      m_slots[step.slot]->mark = std::max(step.size, 1);
    } else if (step.op == Op::k_reconnect) {
      if (job.work.gave.starts_with('0')) m_backlog[job.listener].push_back(m_slots[step.slot]->object);
    } else if (makes(step.op) && job.work.made[0] >= 0) {
      Slot made = *m_slots[step.slot];
      const Kind kind = made.kind == Kind::kListener ? Kind::kTcp : Kind::kUnixStream;
      if (step.op == Op::k_connect) {
        if (job.work.gave.starts_with('0')) m_backlog[made.object].push_back(m_objects);
        made = {0, m_objects++, 1, kind};
      } else if (step.op == Op::k_accept) {
        auto& backlog = m_backlog[made.object];
        const int object = backlog.empty() ? m_objects++ : backlog.front();
        if (!backlog.empty()) backlog.pop_front();
        made = {0, object, 0, kind};
      }
      made.fd = job.work.made[0];
      m_slots[step.other] = made;
    }
  }

  /// Ends all that still waits, by a signal or a cancel, and closes everything.
  void end() {
    const auto done = [](const auto& job) { return job->done.load(std::memory_order_acquire); };
    while (!std::ranges::all_of(m_under_way, done)) {
      for (const auto& job : m_under_way) {
        if (done(job) || !job->begun.load(std::memory_order_acquire)) continue;
        if (m_mode.workers != nullptr) job->fiber->cancel();
        ::syscall(SYS_tgkill, ::getpid(), job->thread, SIGUSR1);  // also to a worker: a mistake in a hook may have it blocked
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (auto& slot : m_slots) {
      if (slot) m_mode.call.close(slot->fd);
    }
    for (const auto& job : m_jobs) {
      if (job->runs_on.joinable()) job->runs_on.join();
      job->fiber.reset();  // which holds the job
      const bool collected = std::ranges::find(m_under_way, job) == m_under_way.end();
      if (collected) continue;
      for (const int fd : job->work.made) {
        if (fd >= 0) m_mode.call.close(fd);
      }
    }
  }

  const Plan& m_plan;
  const Mode& m_mode;
  const Transcript* const m_script;
  const std::chrono::milliseconds m_patience;
  Transcript m_outcomes;
  std::array<std::optional<Slot>, kSlots> m_slots;
  std::map<int, std::deque<int>> m_backlog;  // of each listener: the connections that nobody has accepted
  int m_objects = 0;
  std::vector<std::shared_ptr<Job>> m_under_way;
  std::vector<std::shared_ptr<Job>> m_jobs;
  bool m_stuck = false;
};

}  // namespace

Transcript run(const Plan& plan, const Mode& mode, const Transcript* script, std::chrono::milliseconds patience) {
  return Runner(plan, mode, script, patience).run();
}

}  // namespace sylar::test::differential
