#!/usr/bin/env python3
"""Seeded defects in the protocol headers and in what the scenarios write again, and the scenario that must find each (RT-7.8).

  mutants.py list                 names, files, scenarios, memories and bounds, one mutant a line, for CMake
  mutants.py write NAME FOLDER    writes the file, with the defect, to FOLDER/sylar/... or FOLDER/tests/model/...

A defect is an exact piece of the file and what replaces it; a piece that is not there exactly once is an error, so a change of
a file cannot quietly turn its mutants off.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

WAIT, MAILBOX, QUEUE = "fiber/wait_word.h", "sched/mailbox.h", "sched/spawn_queue.h"
OWN, IDLE = "sched/own_spawn_queue.h", "sched/idle.h"
ENTRY, FD_LIFE, FD_WAITERS = "io/fd_entry.h", "io/fd_life.h", "io/fd_waiters.h"
TIMER, WAITS, CORES = "timer/timer_state.h", "timer/run_waits.h", "fiber/core_pool.h"
NEWS, PASS, ARMING = "timer/front_news.h", "io/timer_pass.h", "io/timer_arming.h"
STEPS, THREAD, MUTEX = "sync/sync_steps.h", "sync/thread_wait.h", "sync/mutex_word.h"
EXCHANGE, SELECT = "sync/exchange.h", "sync/select_steps.h"
LOT = "hook/lock/lot_steps.h"
LENDING, CALLS = "fiber/thread_lending.h", "hook/thread/maker_calls.h"
# What is written again there.
AGAIN, SERVED = "tests/model/scenarios_sync.cc", "tests/model/scenarios_serve.cc"
TRANSFERS = "tests/model/scenarios_transfer.cc"
REQUESTS, ENDS, RUN = "fiber/fiber_requests.h", "fiber/end_observers.h", "sched/run_queue.h"

# name: (file, piece, replacement, scenario, memory), and the preemptions that it takes, if more than 2
MUTANTS = {
    # P1
    "wait_epoch_not_compared": (
        WAIT, "uint64_t open = epoch << kStateBits | kOpen;",
        "uint64_t open = (m_word.load(std::memory_order_relaxed) & ~kStateMask) | kOpen;", "wait/two_wakers", "tso"),
    "wait_claim_by_load_and_store": (
        WAIT, """    return m_word.compare_exchange_strong(open, epoch << kStateBits | state, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);""",
        """    if (m_word.load(std::memory_order_acquire) != open) return false;
    m_word.store(epoch << kStateBits | state, std::memory_order_release);
    return true;""", "wait/two_wakers", "tso"),
    "wait_epoch_restarts": (
        WAIT, "(last >> kStateBits) + 1", "(last & kStateMask) == kOpen ? 2 : 1", "wait/reused_core", "tso"),
    "wait_withdraw_leaves_it_open": (
        WAIT, "bool withdraw(uint64_t epoch) { return close(epoch, kNone); }",
        "bool withdraw(uint64_t epoch) { return m_word.load(std::memory_order_acquire) == (epoch << kStateBits | kOpen); }",
        "wait/withdraw", "tso"),
    # P2, the mailbox
    "mail_published_relaxed": (
        MAILBOX, "reinterpret_cast<uintptr_t>(node), std::memory_order_seq_cst,",
        "reinterpret_cast<uintptr_t>(node), std::memory_order_relaxed,", "sleep/mail", "tso"),
    "mail_drained_relaxed": (
        MAILBOX, "m_head.exchange(kEmpty, std::memory_order_acq_rel)", "m_head.exchange(kEmpty, std::memory_order_relaxed)",
        "sleep/mail", "tso"),
    "mail_not_reversed": (MAILBOX, "mail.pushFront(node);", "mail.push(node);", "sleep/mail", "tso"),
    "mail_to_a_sleeper_not_notified": (
        MAILBOX, "return head == kSleeping;", "return false;", "sleep/mail", "tso"),
    "sleep_declared_without_a_look": (
        MAILBOX, "return m_head.compare_exchange_strong(empty, kSleeping, std::memory_order_seq_cst, std::memory_order_relaxed);",
        "return m_head.exchange(kSleeping, std::memory_order_seq_cst) == empty;", "sleep/mail", "tso"),
    "sleep_declared_acq_rel": (
        MAILBOX, "(empty, kSleeping, std::memory_order_seq_cst, std::memory_order_relaxed)",
        "(empty, kSleeping, std::memory_order_acq_rel, std::memory_order_relaxed)", "sleep/inject", "weak"),
    "sleeper_looked_for_relaxed": (
        MAILBOX, "return m_head.load(std::memory_order_seq_cst) == kSleeping &&",
        "return m_head.load(std::memory_order_relaxed) == kSleeping &&", "sleep/inject", "weak"),
    "sleeper_woken_twice": (
        MAILBOX, "m_head.compare_exchange_strong(sleeping, kEmpty, std::memory_order_seq_cst, std::memory_order_relaxed);\n  }",
        "(m_head.compare_exchange_strong(sleeping, kEmpty, std::memory_order_seq_cst, std::memory_order_relaxed) || true);\n  }",
        "sleep/one_notification", "tso"),
    # P2, the queues
    "spawned_counted_relaxed": (
        QUEUE, "m_count.fetch_add(1, std::memory_order_seq_cst)", "m_count.fetch_add(1, std::memory_order_relaxed)",
        "sleep/inject_to_one", "weak"),
    "spawned_count_read_relaxed": (
        QUEUE, "size_t count() const { return m_count.load(std::memory_order_seq_cst); }",
        "size_t count() const { return m_count.load(std::memory_order_relaxed); }", "sleep/inject_to_one", "weak"),
    "spawned_counted_after_the_lock": (
        QUEUE, """    link(*node);
    return m_count.fetch_add(1, std::memory_order_seq_cst) == 0 ? Pushed::kFirst : Pushed::kMore;""",
        """    link(*node);
    lock.unlock();
    return m_count.fetch_add(1, std::memory_order_seq_cst) == 0 ? Pushed::kFirst : Pushed::kMore;""", "queue/closing", "tso"),
    "spawned_accepted_after_the_close": (
        QUEUE, "    if (m_closed) return Pushed::kRejected;\n", "", "queue/closing", "tso"),
    "spawned_stolen_not_counted": (
        QUEUE, "countOut(share);", "countOut(0);",
        "queue/stealing", "tso"),
    "spawned_taken_out_of_another_queue": (
        QUEUE, "    if (!holds(node)) return false;\n", "    if (node.queue.load(std::memory_order_relaxed) == nullptr) return false;\n",
        "queue/taking_out", "tso"),
    "spawned_taken_out_with_all_before_it": (
        QUEUE, "node.previous->next = next;", "m_first = next;", "queue/taking_out", "tso"),
    "own_spawn_queue_not_shared": (OWN, "m_queue.count() > 0) idle.call();", "m_queue.count() > 0) return;",
                             "sleep/spawned_against_last_sleeper", "tso"),
    "own_spawn_queue_looks_at_no_other_queue": (
        OWN, "std::exchange(m_came_to_fetch, false) ? idle.answer() : m_queue.count() > 0", "m_queue.count() > 0", "sleep/burst",
        "tso"),
    "own_spawn_queue_offered_without_a_call": (
        OWN, "    idle.call();\n    return true;", "    return true;", "sleep/spawned_of_a_fiber_that_computes", "tso"),
    "own_spawn_queue_loot_can_be_stolen_back": (
        OWN, """      QueueNode* const oldest = loot.pop();
      while (QueueNode* node = loot.pop()) SYLAR_CHECK(push(static_cast<SpawnNode*>(node)));
      return oldest;""", """      while (QueueNode* node = loot.pop()) SYLAR_CHECK(push(static_cast<SpawnNode*>(node)));
      return take();""", "sleep/spawned_against_last_sleeper", "tso"),
    # P2, idle workers
    "idle_no_second_look": (IDLE, "if (!answer() && !decided", "if (!decided", "sleep/inject", "tso"),
    "idle_call_not_answered": (
        IDLE, "if (m_called.load(std::memory_order_seq_cst)) m_called.store(false, std::memory_order_seq_cst);\n", "",
        "sleep/spawned_of_a_fiber_that_computes", "tso"),
    "idle_call_of_nobody": (IDLE, "m_called.exchange(true, std::memory_order_seq_cst)) wakeOne();",
                            "m_called.exchange(true, std::memory_order_seq_cst)) return;",
                            "sleep/spawned_of_a_fiber_that_computes", "tso"),
    "idle_looks_before_it_declares": (
        IDLE, """    if (!mailbox.trySleep()) return;
""", """    const bool unstarted = anySpawned();
    if (!mailbox.trySleep()) return;
    const auto answer = [unstarted] { return unstarted; };
""", "sleep/inject", "tso"),
    # The stop
    "stop_looks_at_no_mail": (
        IDLE, "(worker->slot().mailbox.sleeping() && worker->spawned().count() == 0)", "worker->spawned().count() == 0",
        "stop/offer_by_mail", "tso"),
    "stop_no_last_look": (
        IDLE, "m_injector.closeIfEmpty([this] { return nothingLeft(); })", "m_injector.closeIfEmpty([] { return true; })",
        "stop/offer_by_mail", "tso"),
    "stop_pending_ends_unheard": (
        IDLE, "    if (m_stopping.load(std::memory_order_seq_cst)) wakeOne();\n", "", "stop/pending", "tso"),
    "stop_round_not_announced": (
        IDLE, """      finish();
      return true;
    }
    wakeAll();""", """      finish();
      return true;
    }""", "stop/cancel_round", "tso"),
    "stop_excluded_but_not_decided": (
        IDLE, """    } else if (count > 0 && m_asleep + m_excluded == m_host.workers().size()) {
      decide();
    }""", "    }", "stop/exclude", "tso"),
    "stop_waits_for_those_excluded": (
        IDLE, "return ++m_asleep + m_excluded == m_host.workers().size() && decide();",
        "return ++m_asleep == m_host.workers().size() && decide();", "stop/exclude", "tso"),
    # P2, borrowed threads
    "lend_given_back_without_the_lock": (
        LENDING, "    const Lock lock(m_lock);\n    m_free.put(one);", "    m_free.put(one);", "lend/given_back_meanwhile", "tso"),
    "lend_uncalled_though_one_came_back": (
        LENDING, "const bool alone = m_first == nullptr;", "const bool alone = m_first == nullptr && m_free.count() == 0;",
        "lend/given_back_meanwhile", "tso"),
    "lend_sleeps_behind_a_refusal": (
        LENDING, "      if (firstRoom() == room && !m_free.has(room)) moveFirst(next);",
        "      if (firstRoom() != room) return false;\n      if (!m_free.has(room)) moveFirst(next);", "lend/refused_and_taken", "tso"),
    "lend_refused_though_one_came_back": (
        LENDING, "if (firstRoom() == room && !m_free.has(room)) moveFirst", "if (firstRoom() == room) moveFirst",
        "lend/refused_but_given_back", "tso"),
    "lend_counted_down_before_it_is_queued": (
        LENDING, "    Scheduler& scheduler = *next.scheduler;\n",
        """    Scheduler& scheduler = *next.scheduler;
    scheduler.m_count.fetch_sub(std::exchange(next.count, 0), std::memory_order_seq_cst);
""", "lend/stop_waits", "tso"),
    "lend_counted_down_unheard": (
        LENDING, "    scheduler.ended([&scheduler, &next] { scheduler.m_count.fetch_sub(next.count, std::memory_order_seq_cst); });",
        "    scheduler.m_count.fetch_sub(next.count, std::memory_order_seq_cst);", "lend/stop_waits", "tso"),
    "lend_taken_but_listed": (
        LENDING, "      *one = scheduler.m_later;\n", "", "lend/stop_takes_all", "tso"),
    "lend_unpinned": (
        LENDING, "++all.count) all.nodes.push(node);",
        "++all.count) all.nodes.push(node), static_cast<SpawnNode*>(node)->queue.store(nullptr, std::memory_order_relaxed);",
        "lend/cancelled", "tso"),
    "lend_given_back_in_the_child": (
        LENDING, "    if (Types::inForkedChild()) return 0;\n", "", "lend/forked_child", "tso"),
    "lend_calls_counted_behind_the_look": (
        CALLS, "futexWaitUntil(m_calls, calls, until())",
        "futexWaitUntil(m_calls, m_calls.load(std::memory_order_relaxed), until())", "lend/finds_none", "tso"),
    "lend_calls_read_relaxed": (
        CALLS, "m_calls.load(std::memory_order_acquire)", "m_calls.load(std::memory_order_relaxed)", "lend/close_against_a_call",
        "weak"),
    "lend_ends_behind_the_call": (
        CALLS, "    m_ends.store(true, std::memory_order_relaxed);\n    call();", "    call();\n    m_ends.store(true, std::memory_order_relaxed);",
        "lend/finds_none", "tso"),
    # P3
    "fd_edge_not_compared": (
        ENTRY, "    if (edges(direction) != edges_seen) return -EAGAIN;\n", "", "fd/edge_elsewhere", "tso"),
    "fd_wait_proves_empty": (
        ENTRY, "    if (edges(direction) != edges_seen) return -EAGAIN;\n    append(direction, waiter);",
        "    if (edges(direction) != edges_seen) return -EAGAIN;\n    this->setDrained(direction, edges_seen);\n    append(direction, waiter);",
        "fd/watch", "tso"),
    "fd_empty_at_a_later_edge": (
        FD_WAITERS, "at(direction).drained.store(edges_seen + 1, std::memory_order_relaxed);",
        "at(direction).drained.store(edges(direction) + 1, std::memory_order_relaxed);", "fd/edge_elsewhere", "tso"),
    "fd_event_not_counted": (
        FD_WAITERS, """      bump(Direction::kRead);
      claimAll(Direction::kRead, claimed, events);""", "      claimAll(Direction::kRead, claimed, events);", "fd/short_read", "tso"),
    "fd_wakes_one": (
        FD_WAITERS, "        claimed.add(*waiter);  // from here on a fiber that lost its wait to another waker may be gone\n",
        "        claimed.add(*waiter);\n        return;\n", "fd/two_readers", "tso"),
    "fd_event_of_another_generation": (
        ENTRY, "if (generationOf(now) == generation && !isClosing(now)) claimFor(events, claimed);",
        "if (!isClosing(now)) claimFor(events, claimed);", "fd/reuse", "tso"),
    "fd_retry_of_another_generation": (
        FD_LIFE, "if (generationOf(before) == generation && !isClosing(before)) return true;",
        "if (generation != 0 || !isClosing(before)) return true;", "fd/reuse", "tso"),
    "fd_close_does_not_wait_for_pins": (
        FD_LIFE, "    while ((m_life.load(std::memory_order_acquire) & kPins) != 0) Memory::yield();\n", "", "fd/reuse", "tso"),
    "fd_real_close_first": (
        FD_LIFE, "    const uint32_t generation = entry.endWaitsForClose(fd);\n", """    const int early = real_close();
#define real_close() early
    const uint32_t generation = entry.endWaitsForClose(fd);
""", "fd/reuse", "tso"),
    "fd_close_wakes_nobody": (
        FD_WAITERS, "    claimAll(Direction::kRead, claimed);\n    claimAll(Direction::kWrite, claimed);\n    if (registered())",
        "    if (registered())", "fd/close", "tso"),
    "fd_closing_not_declared": (
        FD_LIFE, "const bool mine = !isClosing(m_life.fetch_or(kClosing, std::memory_order_acq_rel));",
        "const bool mine = !isClosing(m_life.fetch_or(0, std::memory_order_acq_rel));", "fd/two_closers", "tso"),
    "fd_waits_for_a_lingering_close": (
        FD_LIFE, "Memory::self() &&\n           Engine::isOpen(fd);", "Memory::self();", "fd/lingering_close", "tso"),
    "fd_move_without_registering": (
        FD_WAITERS, "      forget(fd);\n      at_engine = nullptr;\n    }", "      forget(fd);\n    }", "fd/move", "tso"),
    "fd_engine_leaves_waiters_behind": (
        FD_WAITERS, "if (waiter == nullptr || registerFor(fd, generation, direction, false, *waiter->engine) == 0) continue;",
        "if (waiter == nullptr || waiter->linked) continue;", "fd/engine_ends", "tso"),
    "fd_handlers_close_forgotten": (
        FD_LIFE, "if (marks.left.load(std::memory_order_relaxed) != nullptr && marks.inside == 0) closeLeft(marks.left);", "",
        "fd/close_in_a_handler", "tso"),
    # P3, transfers
    "transfer_queued_while_it_is_closed": (
        ENTRY, """    if (generationOf(now) != generation || isClosing(now)) return -EBADF;
    if (waiter.engine->retired()) return -ECANCELED;  // nobody would take it out
""", """    if (generationOf(now) != generation) return -EBADF;
    if (waiter.engine->retired()) return -ECANCELED;  // nobody would take it out
""", "transfer/close", "tso"),
    "transfer_queued_in_another_generation": (
        ENTRY, """    if (generationOf(now) != generation || isClosing(now)) return -EBADF;
    if (waiter.engine->retired()) return -ECANCELED;  // nobody would take it out
""", """    if (isClosing(now)) return -EBADF;
    if (waiter.engine->retired()) return -ECANCELED;  // nobody would take it out
""", "transfer/reuse", "tso"),
    "transfer_not_queued": (
        ENTRY, "    waiter.events = 0;\n    append(direction, waiter);\n", "    waiter.events = 0;\n", "transfer/close", "tso"),
    "transfer_queued_for_events": (
        ENTRY, "    waiter.events = 0;\n", "", "transfer/event", "tso"),
    "transfer_pinned_in_another_generation": (
        FD_LIFE, "if (generationOf(before) == generation && !isClosing(before)) return true;",
        "if (!isClosing(before)) return true;", "transfer/reuse", "tso"),
    "transfer_pinned_while_it_is_closed": (
        FD_LIFE, "if (generationOf(before) == generation && !isClosing(before)) return true;",
        "if (generationOf(before) == generation) return true;", "transfer/close", "tso"),
    "transfer_ends_the_registration_of_others": (
        ENTRY, "if (registered() && !anyWaits()) forget(fd);", "if (registered()) forget(fd);", "fd/receive_beside_a_reader", "tso"),
    "transfer_leaves_a_registration_that_is_not_there": (
        ENTRY, "if (registered() && !anyWaits()) forget(fd);",
        "if (registered() && !anyWaits()) this->registration()->remove(fd);", "fd/receive_and_read", "tso"),
    "notify_without_a_fence": (
        TRANSFERS, "    notifies.store(on, std::memory_order_relaxed);\n    fence();\n", "    notifies.store(on, std::memory_order_relaxed);\n",
        "transfer/notify_in_order", "tso"),
    "notify_after_the_look": (
        TRANSFERS, "    letNotify(true);\n    bool asks = !flag_is_in_order || hasMore();",
        "    bool asks = !flag_is_in_order || hasMore();\n    letNotify(true);", "transfer/notify_in_order", "tso"),
    "notify_out_of_order_not_asked_again": (
        TRANSFERS, "bool asks = !flag_is_in_order || hasMore();", "bool asks = hasMore();", "transfer/notify_out_of_order", "weak"),
    # What a fiber is asked, and its end
    "post_sent_each_time": (
        REQUESTS, "return m_pending.fetch_or(what, std::memory_order_seq_cst) == 0;",
        "return m_pending.fetch_or(what, std::memory_order_seq_cst) != 0xff;", "life/post", "tso"),
    "post_relies_on_what_was_taken": (
        REQUESTS, "return m_pending.exchange(0, std::memory_order_seq_cst);", "return m_pending.load(std::memory_order_seq_cst);",
        "life/post", "tso"),
    "post_looked_for_before_the_home": (
        REQUESTS, "    m_home.store(owner == 0 ? nullptr : home, std::memory_order_seq_cst);\n    return",
        """    const uint8_t early = m_pending.load(std::memory_order_seq_cst) == 0 ? 0 : take();
    m_home.store(owner == 0 ? nullptr : home, std::memory_order_seq_cst);
    if (early == 0) return 0;
    return early | """, "life/post_while_it_moves", "tso"),
    "post_home_published_release": (
        REQUESTS, "m_home.store(owner == 0 ? nullptr : home, std::memory_order_seq_cst);",
        "m_home.store(owner == 0 ? nullptr : home, std::memory_order_release);", "life/post_while_it_moves", "tso"),
    "post_home_read_acquire": (
        REQUESTS, "Home* const home = m_home.load(std::memory_order_seq_cst);",
        "Home* const home = m_home.load(std::memory_order_acquire);", "life/post_while_it_moves", "weak"),
    "end_told_under_the_lock": (
        ENDS, "        more = m_first != nullptr;\n      }\n", """        more = m_first != nullptr;
        for (; claimed != nullptr; claimed = claimed->next) claimed->ended(claimed);
      }
""", "life/join", "tso"),
    "end_told_to_those_who_left": (
        ENDS, "      if (!observer->claim(observer)) continue;\n", "      (void)observer->claim(observer);\n", "life/join", "tso"),
    "end_observed_after_it": (ENDS, "if (m_over || no_end()) return false;", "if (no_end()) return false;", "life/join", "tso"),
    # A worker that is detached
    "left_question_read_after_it_was_opened": (
        RUN, "case QueueNode::Kind::kMessage: open(node); break;",
        """case QueueNode::Kind::kMessage:
        open(node);
        if (const_cast<const volatile QueueNode*>(node)->kind != QueueNode::Kind::kFiber) break;
        [[fallthrough]];""", "life/detach_with_mail", "tso"),
    "left_run_queue_not_looked_for": (
        RUN, "return std::exchange(m_queue, NodeList());", "return NodeList();", "life/detach", "tso"),
    "left_waits_stay_open": (
        RUN, "(void)core.wait.claim(core.wait.epoch(), WakeReason::kCanceled);", "(void)core;", "life/hand_over", "tso"),
    "run_queue_touched_by_a_fiber": (
        RUN, "    if (inLoop()) {", "    if (!detached()) {", "life/detach", "tso"),
    "run_queue_detached_without_a_barrier": (RUN, "Memory::heavyBarrier() && ", "", "life/detach", "tso"),
    "run_queue_detached_without_a_look_at_the_owner": (
        RUN, " && m_owner.load(std::memory_order_acquire) == Owner::kFiber;", ";", "life/detach_between_fibers", "tso"),
    "run_queue_detached_after_a_refusal": (
        RUN, """    now = Detach::kAsked;
    return m_detach""", """    now = m_detach.load(std::memory_order_relaxed);
    return m_detach""", "life/detach_between_fibers", "tso"),
    "run_queue_comes_back_without_a_look": (
        RUN, "if (m_detach.load(std::memory_order_relaxed) != Detach::kNone && !refuseDetach()) return false;",
        "if (detached()) return false;", "life/detach", "tso"),
    "run_queue_refuses_by_a_store": (
        RUN, "if (m_detach.compare_exchange_strong(now, Detach::kNone, std::memory_order_acq_rel) || now == Detach::kNone) return true;",
        """if (m_detach.load(std::memory_order_acquire) != Detach::kDetached) {
      m_detach.store(Detach::kNone, std::memory_order_release);
      return true;
    }""", "life/detach", "tso"),
    "run_queue_left_relaxed": (
        RUN, "m_owner.store(Owner::kFiber, std::memory_order_release)", "m_owner.store(Owner::kFiber, std::memory_order_relaxed)",
        "life/detach", "tso"),
    # Stop against fire
    "timer_stopped_but_not_claimed": (
        TIMER, "      timer.state = State::kStopped;", "", "timer/stop_against_fire", "tso"),
    "timer_freed_while_handed_out": (
        TIMER, "if (timer.state == State::kQueued) {", "if (timer.state == State::kFree) {", "timer/reused_place", "tso"),
    "timer_freed_before_its_captures": (TIMER, "ended = !last;", "ended = true;", "timer/stop_while_it_runs", "weak"),
    "timer_waiter_not_told": (
        TIMER, "    while (waiters != nullptr) std::exchange(waiters, waiters->next)->wake();\n", "", "timer/stop_sync", "tso"),
    "timer_one_waiter_told": (
        TIMER, "    while (waiters != nullptr) std", "    if (waiters != nullptr) std", "timer/stop_sync", "tso"),
    "timer_waiter_enlisted_after_the_lock": (
        TIMER, "      waiter.next = std::exchange(run->waiters, &waiter);",
        "      lock.unlock();\n      Lock again(m_mutex);\n      waiter.next = std::exchange(run->waiters, &waiter);", "timer/stop_sync", "tso"),
    "timer_waits_for_itself": (TIMER, "if (waits.isHere(run->flow)) {", "if (false) {", "timer/from_its_own_callback", "tso"),
    "run_waiter_gone_while_it_is_woken": (
        WAITS, "      Lock lock(m_mutex);  // the waker has finished with this object, and all that came before the wake is seen\n", "",
        "timer/stop_sync", "weak"),
    "run_waiter_asleep_unheard": (WAITS, "      Memory::futexWakeAll(m_woken);\n", "", "timer/stop_sync", "tso"),
    "gate_last_call_unheard": (
        TIMER, "== (kClosing | 1)) Memory::futexWakeAll(m_calls);", "== (kClosing | 1)) return;", "timer/close", "tso"),
    "gate_left_relaxed": (
        TIMER, "m_calls.fetch_sub(1, std::memory_order_release)", "m_calls.fetch_sub(1, std::memory_order_relaxed)", "timer/close",
        "tso"),
    "gate_seen_empty_relaxed": (
        TIMER, "m_calls.load(std::memory_order_acquire)", "m_calls.load(std::memory_order_relaxed)", "timer/close", "tso"),
    # Free cores
    "core_surplus_kept": (CORES, "    if (m_count == kChunk) {", "    if (false) {", "core/ends_elsewhere", "tso"),
    "core_surplus_not_found": (
        CORES, "std::exchange(m_full, nullptr) : m_reserve.take();", "std::exchange(m_full, nullptr) : nullptr;",
        "core/ends_elsewhere", "tso"),
    "core_lost_with_its_thread": (CORES, "    if (m_full != nullptr) m_reserve.put(m_full);\n  }", "  }", "core/shared_reserve", "tso"),
    "core_surplus_lost": (
        CORES, "      if (m_full != nullptr) m_reserve.put(m_full);\n      m_full", "      m_full", "core/shared_reserve", "tso"),
    "core_chunk_handed_out_twice": (
        CORES, "if (chunk != nullptr) m_chunks = chunk->nextChunk();", "", "core/shared_reserve", "tso"),
    "core_reserve_put_without_lock": (
        CORES, """    Lock lock(m_mutex);
    chunk->nextChunk() = m_chunks;""", "    chunk->nextChunk() = m_chunks;", "core/shared_reserve", "tso"),
    # P4
    "news_told_before_the_call": (
        NEWS, "    return m_looks;\n", "    told(m_looks);\n    return m_looks;\n", "serve/preempted_before_an_earlier", "tso"),
    "news_for_the_earliest_only": (
        NEWS, "(earlier || due_ns < m_known_ns) &&", "earlier &&", "serve/preempted_before_a_later", "tso"),
    "news_told_once_and_for_all": (
        NEWS, "m_told.load(std::memory_order_relaxed) == m_looks)", "m_told.load(std::memory_order_relaxed) != 0)",
        "serve/told_before", "tso"),
    "pass_waits_for_a_stolen_batch": (
        PASS, "if (!woken && !pass.begun() && pass.queued() > 0) return false;", "if (!pass.begun()) return false;",
        "serve/stolen_batch", "tso"),
    "pass_leaves_when_it_was_woken": (PASS, "if (!woken && !pass", "if (!pass", "serve/stolen_batch_and_an_event", "tso"),
    "pass_does_not_rearm": (PASS, "  pass.rearm();\n", "", "serve/next_sleeper", "tso"),
    "arming_looks_for_sleepers_first": (
        ARMING, "    m_owed.store(true, std::memory_order_seq_cst);\n    return anySleeping();\n",
        "    const bool any = anySleeping();\n    m_owed.store(true, std::memory_order_seq_cst);\n    return any;\n",
        "serve/sleeps_meanwhile", "tso"),
    "arming_owed_by_release": (
        ARMING, "m_owed.store(true, std::memory_order_seq_cst);", "m_owed.store(true, std::memory_order_release);",
        "serve/sleeps_meanwhile", "tso"),
    "arming_owed_once": (
        ARMING, "    m_owed.store(true, std::memory_order_seq_cst);\n",
        "    if (m_owed.load(std::memory_order_seq_cst)) return false;\n    m_owed.store(true, std::memory_order_seq_cst);\n",
        "serve/told_for_another", "tso"),
    "arming_owed_to_nobody": (
        ARMING, "return m_owed.load(std::memory_order_seq_cst);", "return false;", "serve/set_for_both", "tso"),
    "arming_settled_after_the_look": (
        SERVED, """    m_front.settle();
    return m_sets.size() == 1 ? m_sets[0]->observeNextDue() : lookAtAll(m_sets);
""", """    const int64_t due_ns = m_sets.size() == 1 ? m_sets[0]->observeNextDue() : lookAtAll(m_sets);
    m_front.settle();
    return due_ns;
""", "serve/owed_again", "tso"),
    "news_of_two_sets_by_the_last_look": (NEWS, "    m_wakes_ns = kNever;\n", "", "serve/sets_comes_during_a_look", "weak"),
    "look_at_one_set": (
        NEWS, "  for (const auto& set : sets) first_ns = std::min(first_ns, set->observeNextDue());\n",
        "  first_ns = sets[0]->observeNextDue();\n", "serve/sets_two", "tso"),
    # P5, the waiters of a queue
    "waiter_taken_without_a_claim": (
        STEPS, "if (claim(*waiter.m_wait)) return waiter.m_taken = true;",
        "(void)claim(*waiter.m_wait);\n    return waiter.m_taken = true;", "sync/mutex_against_a_cancel", "tso"),
    "waiter_left_after_a_timeout": (
        STEPS, "    mine.m_linked ? unlink(queue, mine) : void(queue.m_leaving = queue.m_leaving - 1);\n", "",
        "sync/mutex_against_a_timeout", "tso"),
    "waiter_dequeued_without_the_lock": (
        STEPS, "    const ScopedLockImpl<Mutex> again(lock);\n", "", "sync/mutex_against_a_timeout", "tso"),
    "waiter_queued_after_the_lock": (
        STEPS, "    enqueue(queue, mine, wait);\n    lock.unlock();", "    lock.unlock();\n    enqueue(queue, mine, wait);",
        "sync/mutex_of_three", "tso"),
    "waiters_newest_first": (
        STEPS, "while (Waiter* const oldest = queue.m_first) {", "while (Waiter* const oldest = queue.m_last) {",
        "sync/mutex_handed_over", "tso"),
    "waiters_one_told_of_a_close": (
        STEPS, "while (Waiter* const waiter = takeOldest(queue))", "if (Waiter* const waiter = takeOldest(queue))",
        "sync/channel_closed_for_receivers", "tso"),
    "wakes_one_delivered": (
        STEPS, "while (wakes.m_first != nullptr) {", "if (wakes.m_first != nullptr) {", "sync/channel_closed", "tso"),
    "select_waits_for_itself": (
        STEPS, "waiter != nullptr && waiter->m_wait == &mine", "waiter != nullptr && waiter->m_linked && false",
        "sync/select_of_both_ends", "tso"),
    # P5, those who leave
    "leaver_asks_nobody": (
        STEPS, """ return false;  // was taken out; the queue may be gone
    const ScopedLockImpl<Mutex> again(lock);
    mine.m_linked ?""", """ return (void)ScopedLockImpl<Mutex>(lock), false;
    const ScopedLockImpl<Mutex> again(lock);
    mine.m_linked ?""", "sync/latch_goes_with_the_last", "tso"),
    "leaver_looks_and_then_says_so": (
        STEPS, "    if (mine.m_settled.exchange(true, std::memory_order_acq_rel)) return false;",
        """    if (mine.m_settled.load(std::memory_order_acquire)) return false;
    mine.m_settled.store(true, std::memory_order_release);""", "sync/latch_goes_with_the_last", "tso"),
    "leaver_settles_relaxed": (
        STEPS, "mine.m_settled.exchange(true, std::memory_order_acq_rel)", "mine.m_settled.exchange(true, std::memory_order_relaxed)",
        "sync/latch_against_a_cancel", "tso"),
    "leaver_still_counted": (
        STEPS, "void(queue.m_leaving = queue.m_leaving - 1)", "void(queue.m_leaving - 1)", "sync/latch_goes_with_the_last", "tso"),
    "leaver_gone_before_the_lock": (
        STEPS, """    const ScopedLockImpl<Mutex> again(lock);
    mine.m_linked ? unlink(queue, mine) : void(queue.m_leaving = queue.m_leaving - 1);""",
        """    if (!mine.m_linked) return void(queue.m_leaving = queue.m_leaving - 1), false;
    const ScopedLockImpl<Mutex> again(lock);
    unlink(queue, mine);""", "sync/latch_goes_with_the_last", "tso"),
    "taker_counts_nobody_who_leaves": (
        STEPS, """    if (waiter.m_settled.exchange(true, std::memory_order_acq_rel)) queue.m_leaving = queue.m_leaving + 1;""",
        "    waiter.m_settled.exchange(true, std::memory_order_acq_rel);", "sync/latch_goes_with_the_last", "tso"),
    "taker_looks_and_does_not_say_so": (
        STEPS, "if (waiter.m_settled.exchange(true, std::memory_order_acq_rel))", "if (waiter.m_settled.load(std::memory_order_acquire))",
        "sync/latch_against_a_cancel", "tso"),
    "taker_settles_relaxed": (
        STEPS, "waiter.m_settled.exchange(true, std::memory_order_acq_rel)",
        "waiter.m_settled.exchange(true, std::memory_order_relaxed)", "sync/latch_against_a_cancel", "tso"),
    "taker_settles_before_it_unlinks": (
        STEPS, """    unlink(queue, waiter);
    if (claim(*waiter.m_wait)) return waiter.m_taken = true;
    // The last touch of it, if it is not about to leave. Then the queue must stay until it has.
    if (waiter.m_settled.exchange(true, std::memory_order_acq_rel)) queue.m_leaving = queue.m_leaving + 1;
""", """    if (claim(*waiter.m_wait)) return unlink(queue, waiter), waiter.m_taken = true;
    if (waiter.m_settled.exchange(true, std::memory_order_acq_rel)) queue.m_leaving = queue.m_leaving + 1;
    unlink(queue, waiter);
""", "sync/latch_goes_with_the_last", "tso"),
    # P5, a thread that waits
    "thread_told_relaxed": (
        THREAD, "word.store(kTold, std::memory_order_release)", "word.store(kTold, std::memory_order_relaxed)",
        "sync/channel_receiver_gives_up", "weak"),
    "thread_told_unheard": (
        THREAD, "    Memory::futexWakeOne(word);", "    (void)word;", "sync/mutex_of_three", "tso"),
    "thread_goes_on_untold": (
        THREAD, "    awaitTold();\n    return true;", "    return true;", "sync/channel_receiver_gives_up", "tso"),
    "thread_gives_up_without_a_claim": (
        THREAD, "deadline) && claim()) return false;", "deadline)) return false;", "sync/semaphore", "tso"),
    "thread_withdraws_what_was_claimed": (
        THREAD, "    if (claim()) return true;\n    awaitTold();\n    return false;", "    (void)claim();\n    return true;",
        "sync/select_gives_up", "tso"),
    # P5, the mutex
    "mutex_waiters_behind_forgotten": (
        MUTEX, "m_waiters.empty() ? 0 : kContended", "0", "sync/mutex_handed_over", "tso"),
    "mutex_waiter_not_announced": (MUTEX, "word == 0 ? me : word | kContended", "word == 0 ? me : word", "sync/mutex_of_three", "tso"),
    "mutex_free_while_it_is_handed_over": (
        MUTEX, "m_word.store(*static_cast<const uintptr_t*>(next->data) | contended,", "m_word.store(0 * contended,",
        "sync/mutex_of_three", "tso"),
    "mutex_told_before_the_word": (
        MUTEX, """    m_word.store(*static_cast<const uintptr_t*>(next->data) | contended, std::memory_order_relaxed);
    wakes.add(*next);""", """    const uintptr_t holder = *static_cast<const uintptr_t*>(next->data);
    wakes.add(*next);
    m_word.store(holder | contended, std::memory_order_relaxed);""", "sync/mutex_of_three", "tso"),
    "mutex_unlocked_relaxed": (
        MUTEX, "(word, 0, std::memory_order_release, std::memory_order_relaxed)",
        "(word, 0, std::memory_order_relaxed, std::memory_order_relaxed)", "sync/mutex_of_three", "tso"),
    "mutex_locked_relaxed": (
        MUTEX, "(free, me, std::memory_order_acquire, std::memory_order_relaxed)",
        "(free, me, std::memory_order_relaxed, std::memory_order_relaxed)", "sync/mutex_of_three", "tso"),
    "mutex_freed_relaxed": (
        MUTEX, "m_word.store(0, std::memory_order_release)", "m_word.store(0, std::memory_order_relaxed)",
        "sync/mutex_against_a_timeout", "tso"),
    "mutex_delivered_under_the_lock": (
        MUTEX, "    typename Types::Wakes wakes;\n    const ScopedLockImpl<Lock> lock(m_lock);\n",
        "    const ScopedLockImpl<Lock> lock(m_lock);\n    typename Types::Wakes wakes;\n", "sync/mutex_of_three", "tso"),
    # P5, the channel
    "channel_looked_at_before_the_lock": (
        EXCHANGE, "    Sending mine{&value};\n", "    m_lock.unlock();\n    m_lock.lock();\n    Sending mine{&value};\n",
        "sync/channel_receiver_gives_up", "tso"),
    "channel_send_not_noted": (EXCHANGE, "      sending.taken = true;\n", "", "sync/channel_both_give_up", "tso"),
    "channel_selects_not_seen": (
        EXCHANGE, "if (m_closed || m_size > 0 || m_senders.hasOther(wait)) return false;",
        "if (m_closed || m_size > 0) return false;", "sync/selects_that_face", "tso"),
    # P5, select()
    "select_withdraws_in_vain": (
        SELECT, "return wait.withdraw() ? Ended::kNeedless : Ended::kClaimed;", "return (void)wait.withdraw(), Ended::kNeedless;",
        "sync/select_gives_up", "tso"),
    "select_wait_gone_before_its_places": (
        SELECT, "    OpenWait wait(SyncKind::kSelect, nullptr);\n    Shown shown(cases);\n",
        "    Shown shown(cases);\n    OpenWait wait(SyncKind::kSelect, nullptr);\n", "sync/select_of_two", "tso"),
    "select_places_left": (
        SELECT, "while (m_count > 0) m_cases[--m_count]->dequeue();", "m_count = 0;", "sync/select_of_two", "tso"),
    "select_in_any_order": (
        SELECT, "    std::sort(ordered.begin(), ordered.end(), before);\n", "", "sync/selects_that_face", "tso", 3),
    "select_does_what_was_not_done": (
        SELECT, "        if (one->isDone()) return done(*one);", "        return done(*one);", "sync/select_of_two", "tso"),
    # P5, the primitives over the queue
    "rw_writer_beside_readers": (
        AGAIN, "if (m_writer != 0 || (request.writes && m_readers > 0)) return false;", "if (m_writer != 0) return false;",
        "sync/rw_mutex_of_three", "tso"),
    "rw_newcomer_overtakes": (
        AGAIN, "bool admitted = m_waiters.empty() && admit(request);", "bool admitted = admit(request);",
        "sync/rw_mutex_writer_gives_up", "tso"),
    "rw_one_reader_let_in": (
        AGAIN, "      wakes.add(*oldest);", "      return wakes.add(*oldest);", "sync/rw_mutex_readers_together", "tso"),
    "rw_writer_leaves_readers_behind": (
        AGAIN, "    admitWaiters(wakes);\n    return false;", "    return false;", "sync/rw_mutex_writer_gives_up", "tso"),
    "rw_cancelled_writer_let_in": (
        AGAIN, "if (!m_waiters.take(*oldest)) continue;", "(void)m_waiters.take(*oldest);", "sync/rw_mutex_handed_over", "tso"),
    "event_not_looked_at_again": (
        AGAIN, """    m_lock.lock();
    if (m_set) {
      m_lock.unlock();
      return true;
    }
""", "    m_lock.lock();\n", "sync/event_set_and_reset", "tso"),
    "event_wakes_one": (
        AGAIN, "    m_set = true;\n    m_waiters.wakeAll(wakes);",
        "    m_set = true;\n    if (ModelWaiter* const waiter = m_waiters.takeOldest()) wakes.add(*waiter);",
        "sync/event_against_a_cancel", "tso"),
    "event_set_unlocked": (
        AGAIN, "    const ScopedLockImpl<Lock> lock(m_lock);\n    m_set = true;", "    m_set = true;\n    const ScopedLockImpl<Lock> lock(m_lock);",
        "sync/event_set_and_reset", "tso"),
    "wait_group_ends_with_the_last_but_one": (
        AGAIN, "if (m_count != 0) return;", "if (m_count > 1) return;", "sync/wait_group_goes_with_its_waiter", "tso"),
    "wait_group_ended_unnoticed": (
        AGAIN, """    if (m_count == 0) {
      m_lock.unlock();
      return true;
    }
    ModelWaiter mine;""", "    ModelWaiter mine;", "sync/wait_group_against_a_cancel", "tso"),
    "wait_group_looked_at_unlocked": (
        AGAIN, "bool wait(Deadline deadline) { return isDone() ||", "bool wait(Deadline deadline) { return m_count == 0 ||",
        "sync/wait_group_against_a_cancel", "tso"),
    "condition_unlocks_before_it_waits": (
        AGAIN, """    m_lock.lock();
    Cast::here().delivers_under = 1;
    mutex.unlock();
    Cast::here().delivers_under = 0;
""", "    mutex.unlock();\n    m_lock.lock();\n", "sync/condition", "tso"),
    "condition_locks_unshielded": (
        AGAIN, "    Cast::here().shielded = true;\n", "", "sync/condition_against_a_cancel", "tso"),
    "semaphore_keeps_what_it_gives": (
        AGAIN, "return wakes.add(*waiter);\n    m_count", "wakes.add(*waiter);\n    m_count", "sync/semaphore", "tso"),
    "once_not_looked_at_again": (
        AGAIN, "    if (m_done.load(std::memory_order_relaxed)) return true;\n", "", "sync/once_tried_again", "tso"),
    "once_done_before_it_has_run": (
        AGAIN, """    if (!function()) return false;
    m_done.store(true, std::memory_order_release);
    return true;""", """    m_done.store(true, std::memory_order_release);
    const bool done = function();
    if (!done) m_done.store(false, std::memory_order_release);
    return done;""", "sync/once_tried_again", "tso"),
    "once_done_relaxed": (
        AGAIN, "m_done.store(true, std::memory_order_release);", "m_done.store(true, std::memory_order_relaxed);",
        "sync/once_tried_again", "weak"),
    "future_claimed_by_load_and_store": (
        AGAIN, "    if (m_claimed.exchange(true, std::memory_order_relaxed)) return false;",
        "    if (m_claimed.load(std::memory_order_relaxed)) return false;\n    m_claimed.store(true, std::memory_order_relaxed);",
        "sync/future_brought_once", "tso"),
    "future_ended_before_its_value": (
        AGAIN, "    m_value.set(value);\n    m_ended.set();", "    m_ended.set();\n    m_value.set(value);",
        "sync/future_brought_once", "tso"),
    # P6
    "lot_entered_without_a_fence": (
        LOT, "    bucket.m_lock.lock();\n    Memory::fence();\n", "    bucket.m_lock.lock();\n",
        "lot/mutex_against_a_timeout", "weak"),
    "lot_posted_without_a_fence": (
        LOT, "      bucket.m_posted.exchange(true, std::memory_order_seq_cst);\n      Memory::fence();\n",
        "      bucket.m_posted.exchange(true, std::memory_order_seq_cst);\n", "lot/post_in_a_handler", "weak"),
    "lot_posted_and_not_looked_at": (
        LOT, "while (bucket.m_posted.load(std::memory_order_relaxed) &&", "while (false &&", "lot/post_in_a_handler", "tso"),
    "lot_posted_before_the_last_try": (
        LOT, "return bucket.m_lock.tryLock();  // else", "return false;  // else", "lot/post_in_a_handler", "tso"),
    "lot_left_where_it_was": (
        LOT, "const bool here = mine.m_bucket.load(std::memory_order_relaxed) == &bucket;", "const bool here = true;",
        "lot/requeue_against_a_timeout", "tso"),
    "lot_claim_taken_for_granted": (
        LOT, "return one.claim() && (one.m_told = true);", "(void)one.claim();\n    return one.m_told = true;",
        "lot/condition_against_a_timeout", "tso"),
    "lot_taken_and_not_given_back": (
        LOT, "if (!told && error == 0) give_back(object);", "", "lot/mutex_against_a_cancel", "tso"),
    "lot_moved_and_not_announced": (
        LOT, "        announce(target);\n", "", "lot/requeue_against_a_timeout", "tso"),
    "lot_moved_without_an_end": (
        LOT, "one == last ? nullptr : ", "", "lot/requeue_to_itself", "tso"),
    "lot_serves_any_object": (
        LOT, "if (one->m_object == object && one->m_kind.what == what) {\n        const auto& kind",
        "if (one->m_kind.what == what) {\n        const auto& kind", "lot/mutexes_in_one_bucket", "tso"),
    "lot_passes_on_any_object": (
        LOT, "if (one->m_object == object && one->m_kind.what == what) {\n          one->m_granted",
        "if (one->m_kind.what == what) {\n          one->m_granted", "lot/plain_mutexes_in_one_bucket", "tso"),
    "lot_passes_on_to_any_kind": (
        LOT, "if (one->m_object == object && one->m_kind.what == what) {\n          one->m_granted",
        "if (one->m_object == object) {\n          one->m_granted", "lot/passed_on_past_a_moved_one", "tso"),
    "lot_stops_at_one_that_gave_up": (
        LOT, "        one = next;\n      }\n    }\n    if (core == nullptr) return false;",
        "        one = nullptr;\n      }\n    }\n    if (core == nullptr) return false;", "lot/passed_on_along_a_chain", "tso"),
    "lot_passed_on_to_one_that_gave_up": (
        LOT, "if (claim(bucket, *one) && (core = one->core()) == nullptr)", "(void)claim(bucket, *one);\n          if ((core = one->core()) == nullptr)",
        "lot/plain_mutex_against_a_timeout", "tso"),
    "lot_passed_on_without_a_word": (
        LOT, "          one->m_granted = true;\n", "", "lot/plain_mutex_against_a_timeout", "tso"),
    "lot_entered_and_not_announced": (
        LOT, "    bucket.m_may_wait.store(true, std::memory_order_relaxed);\n    bucket.m_lock.lock();\n    Memory::fence();\n    if (!",
        "    bucket.m_lock.lock();\n    Memory::fence();\n    if (false && !", "lot/plain_mutex_against_a_timeout", "tso"),
    "lot_left_empty_behind_an_announcement": (
        LOT, "    if (!bucket.m_may_wait.load(std::memory_order_relaxed)) announce(bucket);", "    //",
        "lot/plain_mutex_against_a_cancel", "tso"),
    "lot_told_under_the_lock": (
        LOT, "    Wakes wakes;\n    const Hold hold(bucket, in_handler);\n    if (!hold.hasIt()) return;",
        "    const Hold hold(bucket, in_handler);\n    Wakes wakes;\n    if (!hold.hasIt()) return;",
        "lot/mutex_against_a_timeout", "tso"),
}


def path_of(name):
    """Returns the path of the file as an include names it."""
    file = MUTANTS[name][0]
    return file if file.startswith("tests/") else f"sylar/{file}"


def write(name, folder):
    file, piece, replacement = MUTANTS[name][:3]
    text = next(path for path in (ROOT / path_of(name), ROOT / "include" / path_of(name)) if path.exists()).read_text()
    if text.count(piece) != 1:
        sys.exit(f"mutants.py: {name}: this must stand once in {file}, but stands {text.count(piece)} times:\n{piece}")
    target = pathlib.Path(folder) / path_of(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text.replace(piece, replacement))


def main():
    if sys.argv[1:] == ["list"]:
        for name, (_, _, _, scenario, memory, *bound) in MUTANTS.items():
            print(f"{name},{path_of(name)},{scenario},{memory},{bound[0] if bound else 2}")
    elif len(sys.argv) == 4 and sys.argv[1] == "write":
        write(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)


main()
