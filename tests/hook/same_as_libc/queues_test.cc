// Hooked against raw: message queues of POSIX and System V, semaphores of System V, and asynchronous I/O.
#include "tests/hook/core/queue_support.h"
#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

constexpr int64_t kMomentNs = 20'000'000;

timespec inAMoment(int64_t ns = kMomentNs) {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t at = now.tv_sec * 1'000'000'000 + now.tv_nsec + ns;
  return {at / 1'000'000'000, at % 1'000'000'000};
}

// ---- POSIX. --------------------------------------------------------------------------------------------------------------------

/// Writes down what a receive gave: result, priority and bytes.
template <class Receive>
void received(Run& run, const char* what, Receive receive) {
  char bytes[9] = "--------";
  unsigned priority = 99;
  run.got(what, receive(bytes, &priority));
  run.note("message", std::to_string(priority) + ' ' + bytes);
}

void receives(Run& run) {
  const MessageQueue queue;
  const auto receive = [&](char* to, unsigned* priority) { return run.call.mq_receive(queue.fd, to, 8, priority); };
  run.call.mq_send(queue.fd, "low", 3, 1);
  run.call.mq_send(queue.fd, "high", 4, 7);
  received(run, "there", receive);
  received(run, "there", receive);
  run.whileItWaits([&](const Calls& libc) { libc.mq_send(queue.fd, "later", 5, 3); });
  received(run, "waits", receive);
  run.join();
  run.whileItWaits([&](const Calls& libc) { libc.mq_send(queue.fd, "", 0, 0); });
  received(run, "waits", [&](char* to, unsigned*) { return run.call.mq_receive(queue.fd, to, 8, nullptr); });
  run.join();
  for (const int64_t ns : {kMomentNs, int64_t{0}, int64_t{-5'000'000'000}}) {
    const timespec end = inAMoment(ns);
    received(run, "timed",
             [&](char* to, unsigned* priority) { return run.call.mq_timedreceive(queue.fd, to, 8, priority, &end); });
  }
  const timespec late = inAMoment(60'000'000'000);
  run.whileItWaits([&](const Calls& libc) { libc.mq_send(queue.fd, "timed", 5, 4); });
  received(run, "in time",
           [&](char* to, unsigned* priority) { return run.call.mq_timedreceive(queue.fd, to, 8, priority, &late); });
}

void sends(Run& run) {
  const MessageQueue queue;
  char bytes[8];
  for (int i = 0; i < 2; ++i) run.got("room", run.call.mq_send(queue.fd, "x", 1, 0));
  run.whileItWaits([&](const Calls& libc) { libc.mq_receive(queue.fd, bytes, 8, nullptr); });
  run.got("waits", run.call.mq_send(queue.fd, "waited", 6, 2));
  run.join();
  for (const int64_t ns : {kMomentNs, int64_t{0}, int64_t{-5'000'000'000}}) {
    const timespec end = inAMoment(ns);
    run.got("timed", run.call.mq_timedsend(queue.fd, "x", 1, 0, &end));
  }
  const timespec late = inAMoment(60'000'000'000);
  run.whileItWaits([&](const Calls& libc) { libc.mq_receive(queue.fd, bytes, 8, nullptr); });
  run.got("in time", run.call.mq_timedsend(queue.fd, "timed", 5, 9, &late));
  run.join();
  received(run, "first", [&](char* to, unsigned* priority) { return run.call.mq_receive(queue.fd, to, 8, priority); });
}

/// What does not wait, with and without a message in the queue.
void refusesQueues(Run& run) {
  for (const int flags : {0, O_NONBLOCK}) {
    const MessageQueue queue(flags);
    const auto try_all = [&] {
      char bytes[8];
      const timespec end = inAMoment(), wrong{end.tv_sec, 1'000'000'000}, before{-1, 0}, past{1, 0};
      const auto* const bad = static_cast<const timespec*>(badPointer());
      for (const timespec* const time : {&wrong, &before, bad}) {
        run.got("receive", run.call.mq_timedreceive(queue.fd, bytes, 8, nullptr, time));
        run.got("send", run.call.mq_timedsend(queue.fd, "x", 1, 0, time));
      }
      run.got("small", run.call.mq_receive(queue.fd, bytes, 7, nullptr));
      run.got("large", run.call.mq_send(queue.fd, "123456789", 9, 0));
      run.got("priority", run.call.mq_send(queue.fd, "x", 1, 1u << 20));
      run.got("memory", run.call.mq_timedsend(queue.fd, static_cast<char*>(badPointer()), 1, 0, &past));
      run.got("nobody", run.call.mq_receive(999, bytes, 8, nullptr));
      run.got("nobody", run.call.mq_send(-1, "x", 1, 0));
      run.got("no queue", run.call.mq_receive(STDERR_FILENO, bytes, 8, nullptr));
    };
    try_all();
    char bytes[8];
    const timespec end = inAMoment();
    run.got("empty", run.call.mq_timedreceive(queue.fd, bytes, 8, nullptr, &end));
    run.got("send", run.call.mq_send(queue.fd, "x", 1, 0));
    try_all();
    run.got("send", run.call.mq_send(queue.fd, "x", 1, 0));
    run.got("full", run.call.mq_timedsend(queue.fd, "x", 1, 0, &end));
  }
  run.got("close", run.call.mq_close(999));
}

void onOneSide(Run& run) {
  const MessageQueue queue;
  char bytes[8];
  const std::string name = "/proc/self/fd/" + std::to_string(queue.fd);
  const int reader = run.keep(::open(name.c_str(), O_RDONLY)), writer = run.keep(::open(name.c_str(), O_WRONLY));
  run.got("write to the reader", run.call.mq_send(reader, "x", 1, 0));
  run.got("read from the writer", run.call.mq_receive(writer, bytes, 8, nullptr));
  run.whileItWaits([&](const Calls& libc) { libc.mq_send(writer, "x", 1, 0); });
  run.got("receive", run.call.mq_receive(reader, bytes, 8, nullptr));
}

// ---- System V. -----------------------------------------------------------------------------------------------------------------

void receive(Run& run, const char* what, const SystemQueue& queue, long type, int flags = 0,
             size_t size = sizeof SystemMessage::text) {
  SystemMessage message;
  run.got(what, run.call.msgrcv(queue.id, &message, size, type, flags));
  run.note("message", std::to_string(message.type) + ' ' + std::string(message.text, 7));
}

void systemQueue(Run& run) {
  SystemQueue queue;
  queue.send(run.call, 3, "three");
  queue.send(run.call, 5, "five");
  receive(run, "of a type", queue, 5);
  receive(run, "small", queue, 0, 0, 2);
  receive(run, "cut", queue, 0, MSG_NOERROR, 2);
  receive(run, "does not wait", queue, 0, IPC_NOWAIT);
  receive(run, "copy", queue, 0, MSG_COPY);
  run.whileItWaits([&](const Calls& libc) {
    queue.send(libc, 2, "other");
    queue.send(libc, 4, "waited");
  });
  receive(run, "waits", queue, 4);
  run.join();
  receive(run, "all but one", queue, 4, MSG_EXCEPT);
  for (int i = 0; i < 2; ++i) run.got("room", queue.send(run.call, 1, "x"));
  run.got("full", queue.send(run.call, 1, "x", IPC_NOWAIT));
  run.whileItWaits([&](const Calls& libc) { queue.receive(libc); });
  run.got("waits", queue.send(run.call, 6, "x"));
  run.join();
  receive(run, "lowest", queue, -6);
  run.got("type", queue.send(run.call, 0, "x"));
  run.got("memory", run.call.msgsnd(queue.id, badPointer(), 1, 0));
  run.got("memory", run.call.msgrcv(queue.id, badPointer(), 8, 6, 0));
  run.got("size", run.call.msgsnd(queue.id, badPointer(), SIZE_MAX, 0));
  run.got("nobody", run.call.msgrcv(-1, badPointer(), 8, 0, 0));
}

void systemQueueIsRemoved(Run& run) {
  for (const bool sends : {false, true}) {
    SystemQueue queue;
    if (sends) {
      for (int i = 0; i < 2; ++i) queue.send(libcCalls(), 1, "x");
    }
    run.whileItWaits([&](const Calls&) { queue.remove(); });
    if (sends)
      run.got("send", queue.send(run.call, 1, "x"));
    else
      receive(run, "receive", queue, 0);
    run.join();
    run.got("send", queue.send(run.call, 1, "x"));
    receive(run, "receive", queue, 0);
  }
}

void note(Run& run, const Semaphores& set) {
  std::string values;
  for (int i = 0; i < 3; ++i) values += std::to_string(set.value(i)) + ' ';
  run.note("values", values + (::semctl(set.id, 0, GETPID) == ::getpid() ? "by this process" : ""));
}

void semaphores(Run& run) {
  const Semaphores set;
  run.got("add", set.op(run.call, {add(0, 2), add(1, 1)}));
  run.got("take", set.op(run.call, {add(0, -1, SEM_UNDO), add(1, -1)}));
  run.got("does not wait", set.op(run.call, {add(1, -1, IPC_NOWAIT)}));
  note(run, set);
  run.whileItWaits([&](const Calls& libc) { set.op(libc, {add(1, 3)}); });
  run.got("waits", set.op(run.call, {add(1, -2), add(2, 1)}));
  run.join();
  note(run, set);
  run.whileItWaits([&](const Calls& libc) { set.op(libc, {add(1, -1)}); });
  run.got("waits for zero", set.op(run.call, {add(1, 0), add(2, 1, SEM_UNDO)}));
  run.join();
  note(run, set);
  const timespec moment{0, kMomentNs}, none{}, wrong{0, -1}, before{-1, 0}, late{60, 0};
  for (const timespec* const time : {&moment, &none, &wrong, &before, static_cast<const timespec*>(badPointer())}) {
    run.got("timed", set.op(run.call, {add(0, -5)}, time));
    run.got("at once", set.op(run.call, {add(0, 1)}, time));
  }
  run.whileItWaits([&](const Calls& libc) { set.op(libc, {add(0, 4)}); });
  run.got("in time", set.op(run.call, {add(0, -5)}, &late));
  run.join();
  note(run, set);
}

/// Of operations of which some may wait, the first that would decides.
void someMayWait(Run& run) {
  const Semaphores set;
  run.got("first", set.op(run.call, {add(0, -1, IPC_NOWAIT), add(1, -1)}));
  run.whileItWaits([&](const Calls& libc) { set.op(libc, {add(0, 1), add(1, 1)}); });
  run.got("second", set.op(run.call, {add(0, -1), add(1, -1, IPC_NOWAIT)}));
  run.join();
  note(run, set);
  const timespec moment{0, kMomentNs};
  run.got("timed", set.op(run.call, {add(0, -1), add(1, -1, IPC_NOWAIT)}, &moment));
  run.got("all", set.op(run.call, {add(0, -1, IPC_NOWAIT), add(1, -1, IPC_NOWAIT)}));
  std::vector<sembuf> many(100, add(2, 1));
  run.got("many", set.op(run.call, many));
  many.push_back(add(0, -1));
  run.whileItWaits([&](const Calls& libc) { set.op(libc, {add(0, 1)}); });
  run.got("many that wait", set.op(run.call, many));
  run.join();
  note(run, set);
}

/// A zero ends the wait, however short it lasts. Cause: a fiber that asked from time to time missed it.
void waitsForAShortZero(Run& run) {
  const Semaphores set;
  for (const auto& operations : {std::vector{add(0, 0)}, std::vector{add(1, 1), add(0, 0)}}) {
    set.op(libcCalls(), {add(0, 1)});
    run.whileItWaits([&](const Calls& libc) {
      while (set.waitersForZero(0) == 0) std::this_thread::yield();
      set.op(libc, {add(0, -1)});
      set.op(libc, {add(0, 1)});
    });
    run.got("waits for zero", set.op(run.call, operations));
    run.join();
    run.got("take", set.op(run.call, {add(0, -1)}));
    run.got("is zero", set.op(run.call, operations));
    note(run, set);
  }
  const timespec moment{0, kMomentNs}, none{};
  set.op(run.call, {add(0, 1)});
  for (const timespec* const time : {&moment, &none}) run.got("timed", set.op(run.call, {add(0, 0)}, time));
  run.got("does not wait", set.op(run.call, {add(0, 0, IPC_NOWAIT)}));
}

void refusesSemaphores(Run& run) {
  Semaphores set;
  run.got("none", set.op(run.call, {}));
  run.got("too many", set.op(run.call, std::vector<sembuf>(40'000, add(0, 1))));
  run.got("number", set.op(run.call, {add(7, -1)}));
  run.got("too large", set.op(run.call, {add(0, 32'767), add(0, 32'767)}));
  run.got("memory", run.call.semop(set.id, static_cast<sembuf*>(badPointer()), 1));
  run.got("nobody", run.call.semop(-1, static_cast<sembuf*>(badPointer()), 1));
  run.whileItWaits([&](const Calls&) { set.remove(); });
  run.got("removed", set.op(run.call, {add(0, -1)}));
  run.join();
  run.got("not there", set.op(run.call, {add(0, -1)}));
}

#ifdef __x86_64__
void byNumber(Run& run) {
  const SystemQueue queue;
  const MessageQueue messages;
  const Semaphores set;
  SystemMessage message;
  char bytes[8];
  const timespec late = inAMoment(60'000'000'000), moment{0, kMomentNs};
  sembuf take = add(0, -1);
  run.whileItWaits([&](const Calls& libc) { libc.mq_send(messages.fd, "abc", 3, 0); });
  run.got("mq_timedreceive", run.call.syscall(SYS_mq_timedreceive, messages.fd, bytes, 8, nullptr, &late));
  run.join();
  run.got("mq_timedsend", run.call.syscall(SYS_mq_timedsend, messages.fd, "abc", 3, 0, nullptr));
  run.whileItWaits([&](const Calls& libc) { queue.send(libc, 1, "x"); });
  run.got("msgrcv", run.call.syscall(SYS_msgrcv, queue.id, &message, 8, 0, 0));
  run.join();
  run.got("msgsnd", run.call.syscall(SYS_msgsnd, queue.id, &message, 8, 0));
  run.whileItWaits([&](const Calls& libc) { set.op(libc, {add(0, 1)}); });
  run.got("semop", run.call.syscall(SYS_semop, set.id, &take, 1));
  run.join();
  run.got("semtimedop", run.call.syscall(SYS_semtimedop, set.id, &take, 1, &moment));
}
#endif

// ---- Asynchronous I/O. ---------------------------------------------------------------------------------------------------------

void suspends(Run& run) {
  const Ends pipe = run.keep(makePipe(run.make));
  char bytes[8];
  aiocb one = request(pipe[0], bytes, sizeof bytes);
  aiocb* const list[3] = {nullptr, &one, nullptr};
  const timespec none{}, moment{0, kMomentNs}, late{60, 0};
  run.got("of nothing", run.call.aio_suspend(list, 1, nullptr));
  EXPECT_EQ(::aio_read(&one), 0);
  for (const timespec* const time : {&none, &moment}) run.got("timed", run.call.aio_suspend(list + 1, 1, time));
  run.got("with none", run.call.aio_suspend(list, 3, &moment));
  run.whileItWaits([=](const Calls& libc) { libc.write(pipe[1], "abc", 3); });
  run.got("waits", run.call.aio_suspend(list + 1, 1, nullptr));
  run.join();
  run.got("read", ::aio_return(&one));
  run.got("there", run.call.aio_suspend(list, 3, &late));
  run.got("count", run.call.aio_suspend(list, opaque(-1), &none));
}

void lists(Run& run) {
  const Ends first = run.keep(makePipe(run.make)), second = run.keep(makePipe(run.make));
  char bytes[3][8];
  aiocb one = request(first[0], bytes[0], 8), other = request(second[0], bytes[1], 8), wrong = request(999, bytes[2], 8);
  aiocb nothing = request(first[0], bytes[2], 8, LIO_NOP), unwanted = request(first[0], bytes[2], 8);
  unwanted.aio_reqprio = -1;
  const auto wait_for = [&](const char* what, std::vector<aiocb*> list, int mode = LIO_WAIT) {
    run.got(what, run.call.lio_listio(mode, list.data(), static_cast<int>(list.size()), nullptr));
    run.join();
    for (aiocb* each : list) {
      if (each != nullptr && each->aio_lio_opcode != LIO_NOP) run.note("error", std::to_string(::aio_error(each)));
    }
  };
  const auto write_later = [&] {
    run.whileItWaits([=](const Calls& libc) {
      libc.write(first[1], "abc", 3);
      libc.write(second[1], "defgh", 5);
    });
  };
  write_later();
  wait_for("both", {&one, nullptr, &other, &nothing});
  run.got("read", ::aio_return(&one));
  run.got("read", ::aio_return(&other));
  write_later();
  wait_for("one fails", {&one, &wrong, &other});
  wait_for("all fail", {&wrong});
  wait_for("none is taken", {&unwanted, &nothing});
  wait_for("some are taken", {&wrong, &unwanted});
  wait_for("nothing", {nullptr, &nothing});
  wait_for("mode", {&nothing}, 77);
  aiocb* const no_list[] = {nullptr};
  run.got("none", run.call.lio_listio(LIO_WAIT, no_list, 0, nullptr));
  run.got("count", run.call.lio_listio(LIO_WAIT, no_list, opaque(-1), nullptr));
}

std::vector<Case> cases() {
  return {
      {"Receives", receives},
      {"Sends", sends},
      {"RefusesQueues", refusesQueues},
      {"OnOneSide", onOneSide},
      {"SystemQueue", systemQueue},
      {"SystemQueueIsRemoved", systemQueueIsRemoved},
      {"Semaphores", semaphores},
      {"SomeMayWait", someMayWait},
      {"WaitsForAShortZero", waitsForAShortZero},
      {"RefusesSemaphores", refusesSemaphores},
#ifdef __x86_64__
      {"ByNumber", byNumber},
#endif
      {"Suspends", suspends},
      {"Lists", lists},
  };
}

class QueuesTest : public SameAsLibc {};

// HA-5
TEST_P(QueuesTest, ResultErrnoAndData) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, QueuesTest, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
