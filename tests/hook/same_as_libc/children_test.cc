// Hooked against raw: waits for children, system and pclose.
#include "tests/hook/process/children.h"

#include <sys/ptrace.h>
#include <sys/resource.h>

#include <csignal>
#include <semaphore>
#include <sstream>

#include "sylar/base/sanitizers.h"
#include "tests/hook/same_as_libc/same_as_libc.h"
#include "tests/support/sanitized.h"

namespace sylar::test {
namespace {

/// What a status says, without the process's id.
std::string statusText(int status) {
  if (WIFEXITED(status)) return "exited " + std::to_string(WEXITSTATUS(status));
  if (WIFSIGNALED(status)) return "killed " + std::to_string(WTERMSIG(status));
  if (WIFSTOPPED(status)) return "stopped " + std::to_string(WSTOPSIG(status));
  return WIFCONTINUED(status) ? "continued" : "odd";
}

/// Writes down a result that is the id of one of two children.
void gotChild(Run& run, const std::string& what, pid_t result, pid_t first, pid_t second = -2) {
  run.got(what, result == first ? 1 : result == second ? 2 : result);
}

void noteInfo(Run& run, const siginfo_t& info, pid_t child) {
  run.note("who", info.si_pid == child ? "the child" : std::to_string(info.si_pid));
  run.note("what", std::to_string(info.si_signo) + " " + std::to_string(info.si_errno) + " " + std::to_string(info.si_code) +
                       " " + std::to_string(info.si_status));
  EXPECT_EQ(info.si_uid, info.si_pid == child ? ::getuid() : 0);
}

/// A child that exits with 7, most likely while the run waits.
pid_t exitsLater(Run& run) {
  const Ends ends = run.keep(makePipe(run.make));
  run.later([fd = ends[1]](const Calls&) { tellToExit(fd, 7); });
  return childThatReads(ends[0]);
}

pid_t pauses() {
  return startChild([] {
    for (;;) ::pause();
    return 0;
  });
}

void signalsLater(Run& run, pid_t child, int signal) {
  run.later([=](const Calls&) { EXPECT_EQ(::kill(child, signal), 0); });
}

void byId(Run& run) {
  int status = 0;
  pid_t child = exitsLater(run);
  gotChild(run, "waitpid", run.call.waitpid(child, &status, 0), child);
  run.note("status", statusText(status));
  gotChild(run, "waitpid", run.call.waitpid(child, &status, 0), child);
  child = pauses();
  signalsLater(run, child, SIGKILL);
  rusage usage{};
  gotChild(run, "wait4", run.call.wait4(child, &status, 0, &usage), child);
  run.note("status", statusText(status));
  run.note("usage", std::to_string(usage.ru_maxrss > 0));
  child = exitsLater(run);
  gotChild(run, "waitpid", run.call.waitpid(child, nullptr, 0), child);
}

void any(Run& run) {
  int status = 0;
  rusage usage{};
  const Ends ends[2] = {run.keep(makePipe(run.make)), run.keep(makePipe(run.make))};
  const pid_t first = childThatReads(ends[0][0]), second = childThatReads(ends[1][0]);
  run.later([fd = ends[1][1]](const Calls&) { tellToExit(fd, 2); });
  gotChild(run, "wait", run.call.wait(&status), first, second);
  run.note("status", statusText(status));
  run.later([fd = ends[0][1]](const Calls&) { tellToExit(fd, 1); });
  gotChild(run, "wait3", run.call.wait3(&status, 0, &usage), first, second);
  run.note("status", statusText(status) + " " + std::to_string(usage.ru_maxrss > 0));
  run.got("wait", run.call.wait(&status));
  run.got("wait3", run.call.wait3(&status, 0, &usage));
  run.got("waitpid", run.call.waitpid(-1, &status, 0));
  run.got("waitid", run.call.waitid(P_ALL, 0, nullptr, WEXITED));
}

void byGroup(Run& run) {
  int status = 0;
  siginfo_t info{};
  const pid_t ours = exitsLater(run);
  const Ends ends = run.keep(makePipe(run.make));
  const pid_t leader = childThatReads(ends[0]), member = childThatReads(ends[0]);
  EXPECT_EQ(::setpgid(leader, leader), 0);
  EXPECT_EQ(::setpgid(member, leader), 0);
  gotChild(run, "waitpid", run.call.waitpid(0, &status, 0), ours);
  run.got("waitpid", run.call.waitpid(0, &status, 0));
  run.later([fd = ends[1]](const Calls&) { tellToExit(fd, 1); });
  const pid_t told = run.call.waitpid(-leader, &status, 0);
  run.got("waitpid", told == leader || told == member);
  run.later([fd = ends[1]](const Calls&) { tellToExit(fd, 1); });
  run.got("waitid", run.call.waitid(P_PGID, static_cast<id_t>(leader), &info, WEXITED));
  noteInfo(run, info, told == leader ? member : leader);
  run.got("waitid", run.call.waitid(P_PGID, static_cast<id_t>(leader), &info, WEXITED));
}

void withInfo(Run& run) {
  siginfo_t info{};
  const pid_t child = exitsLater(run);
  const auto id = static_cast<id_t>(child);
  run.got("waitid", run.call.waitid(P_PID, id, &info, WEXITED | WNOWAIT));
  noteInfo(run, info, child);
  info = {};
  run.got("waitid", run.call.waitid(P_ALL, 0, &info, WEXITED));
  noteInfo(run, info, child);
  run.got("waitid", run.call.waitid(P_PID, id, &info, WEXITED));
  noteInfo(run, info, child);  // the kernel writes zeros
  const pid_t next = exitsLater(run);
  run.got("waitid", run.call.waitid(P_PID, static_cast<id_t>(next), nullptr, WEXITED));
  run.got("waitid", run.call.waitid(P_PID, static_cast<id_t>(next), nullptr, WEXITED));
}

void byDescriptor(Run& run) {
  siginfo_t info{};
  pid_t child = exitsLater(run);
  int pidfd = run.keep(pidfdOf(child));
  run.got("waitid", run.call.waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED));
  noteInfo(run, info, child);
  run.got("waitid", run.call.waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED));
  child = pauses();
  pidfd = run.keep(pidfdOf(child, O_NONBLOCK));
  run.got("waitid", run.call.waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED));
  noteInfo(run, info, child);
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  run.got("waitid", run.call.waitid(P_PID, static_cast<id_t>(child), &info, WEXITED));
  noteInfo(run, info, child);
  run.got("waitid", run.call.waitid(P_PIDFD, static_cast<id_t>(run.keep(makePipe(run.make))[0]), &info, WEXITED));
}

void stops(Run& run) {
  int status = 0;
  siginfo_t info{};
  const pid_t child = pauses();
  const auto id = static_cast<id_t>(child);
  signalsLater(run, child, SIGSTOP);
  gotChild(run, "waitpid", run.call.waitpid(child, &status, WUNTRACED), child);
  run.note("status", statusText(status));
  signalsLater(run, child, SIGCONT);
  gotChild(run, "wait4", run.call.wait4(-1, &status, WCONTINUED, nullptr), child);
  run.note("status", statusText(status));
  signalsLater(run, child, SIGSTOP);
  run.got("waitid", run.call.waitid(P_PID, id, &info, WSTOPPED | WEXITED));
  noteInfo(run, info, child);
  signalsLater(run, child, SIGCONT);
  run.got("waitid", run.call.waitid(P_ALL, 0, &info, WCONTINUED));
  noteInfo(run, info, child);
  signalsLater(run, child, SIGTERM);
  run.got("waitid", run.call.waitid(P_PID, id, &info, WSTOPPED | WCONTINUED | WEXITED));
  noteInfo(run, info, child);
}

/// Stops of a tracee are told to its tracer without WUNTRACED.
void traced(Run& run) {
  int status = 0;
  const Ends ends = run.keep(makePipe(run.make));
  const pid_t child = startChild([fd = ends[0]] {
    char byte;
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0 || ::read(fd, &byte, 1) != 1) return 1;
    ::raise(SIGWINCH);  // other files have SIGUSR1 and SIGUSR2 blocked
    return 5;
  });
  run.later([fd = ends[1]](const Calls&) { tellToExit(fd, 0); });
  gotChild(run, "waitpid", run.call.waitpid(child, &status, 0), child);
  run.note("status", statusText(status));
  EXPECT_EQ(::ptrace(PTRACE_CONT, child, nullptr, nullptr), 0);  // without the signal
  gotChild(run, "waitpid", run.call.waitpid(child, &status, 0), child);
  run.note("status", statusText(status));
}

void withoutWaiting(Run& run) {
  int status = 0;
  siginfo_t info{};
  info.si_pid = 12345;
  const Ends ends = run.keep(makePipe(run.make));
  const pid_t child = childThatReads(ends[0]);
  run.got("waitpid", run.call.waitpid(child, &status, WNOHANG));
  run.got("wait3", run.call.wait3(&status, WNOHANG, nullptr));
  run.got("waitid", run.call.waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
  noteInfo(run, info, child);
  tellToExit(ends[1], 3);
  run.got("waitid", run.call.waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
  gotChild(run, "waitpid", run.call.waitpid(-1, &status, WNOHANG), child);
  run.note("status", statusText(status));
}

void wrong(Run& run) {
  int status = 0;
  siginfo_t info{};
  run.got("waitpid", run.call.waitpid(1, &status, 0));
  run.got("waitpid", run.call.waitpid(opaque(INT32_MIN), &status, 0));
  run.got("waitpid", run.call.waitpid(-1, &status, 0x100));
  run.got("wait4", run.call.wait4(-1, &status, WEXITED | WSTOPPED, nullptr));
  run.got("waitid", run.call.waitid(P_ALL, 0, &info, 0));
  run.got("waitid", run.call.waitid(P_ALL, 0, &info, WEXITED | 0x100));
  run.got("waitid", run.call.waitid(P_PID, 0, &info, WEXITED));
  run.got("waitid", run.call.waitid(P_PID, opaque(~id_t{0}), &info, WEXITED));
  run.got("waitid", run.call.waitid(P_PIDFD, opaque(~id_t{0}), &info, WEXITED));
  run.got("waitid", run.call.waitid(P_PIDFD, 9999, &info, WEXITED));
  // UBSan refuses such a value of an enum.
  if (!kSanitized) run.got("waitid", run.call.waitid(static_cast<idtype_t>(opaque(77)), 1, &info, WEXITED));
}

#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)
/// The child is taken nevertheless, once it has exited.
void badPointers(Run& run) {
  const std::function<ssize_t(pid_t)> waits[] = {
      [&](pid_t child) { return run.call.waitpid(child, static_cast<int*>(badPointer()), 0); },
      [&](pid_t child) { return run.call.wait4(child, nullptr, 0, static_cast<rusage*>(badPointer())); },
      [&](pid_t child) {
        return run.call.waitid(P_PID, static_cast<id_t>(child), static_cast<siginfo_t*>(badPointer()), WEXITED);
      },
  };
  for (const auto& wait : waits) {
    const pid_t child = exitsLater(run);
    run.got("wait", wait(child));
    run.got("again", wait(child));
    run.got("waitpid", run.call.waitpid(child, nullptr, 0));
  }
}
#endif

/// Nobody is told of a child, but a wait ends when it has gone.
void ignoredSignal(Run& run) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  int status = 0;
  pid_t child = exitsLater(run);
  run.got("waitpid", run.call.waitpid(child, &status, 0));
  child = exitsLater(run);
  const pid_t other = exitsLater(run);
  run.got("wait", run.call.wait(&status));
  EXPECT_EQ(::kill(child, 0), -1);
  EXPECT_EQ(::kill(other, 0), -1);
  ::signal(SIGCHLD, before);
}

void ofThisThread(Run& run) {
  int status = 0;
  std::atomic<pid_t> others{0};
  std::binary_semaphore waited{0};
  const Ends ends = run.keep(makePipe(run.make));
  std::thread thread([&] {
    others.store(childThatReads(ends[0]));
    waited.acquire();
  });
  while (others.load() == 0) std::this_thread::yield();
  run.got("waitpid", run.call.waitpid(others.load(), &status, __WNOTHREAD));
  const pid_t child = exitsLater(run);
  gotChild(run, "waitpid", run.call.waitpid(-1, &status, __WNOTHREAD), child);
  waited.release();
  thread.join();
  tellToExit(ends[1], 4);
  gotChild(run, "waitpid", run.call.waitpid(others.load(), &status, 0), others.load());
}

/// A child that sends its parent no signal is a clone, which only some waits tell of.
void clones(Run& run) {
  for (const int option : {static_cast<int>(__WCLONE), __WALL}) {
    int status = 0;
    const Ends ends = run.keep(makePipe(run.make));
    const auto child = static_cast<pid_t>(sys::call(SYS_clone, 0, 0, 0, 0, 0));
    if (child == 0) {
      char code;
      sys::call(SYS_read, ends[0], &code, 1);
      sys::call(SYS_exit_group, code);
    }
    run.got("waitpid", run.call.waitpid(child, &status, 0));
    run.got("wait", run.call.wait(&status));
    run.later([fd = ends[1]](const Calls&) { tellToExit(fd, 6); });
    gotChild(run, "waitpid", run.call.waitpid(child, &status, option), child);
    run.note("status", statusText(status));
  }
}

/// What commands have written to the other end of `fd`.
std::string said(int fd) {
  char text[512];
  const ssize_t size = libcCalls().read(fd, text, sizeof text);
  return {text, size > 0 ? static_cast<size_t>(size) : 0};
}

/// Runs a command that tells which of four signals are blocked in it and ignored in it, and which are ignored here meanwhile.
void tellSignals(Run& run, const Ends& ends) {
  const std::string command = "exec >/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends[1]) +
                              "; grep -hE 'SigBlk|SigIgn' /proc/self/status; grep SigIgn /proc/$PPID/status";
  run.note("system", statusText(run.call.system(command.c_str())));
  std::istringstream lines(said(ends[0]));
  std::string name;
  uint64_t signals = 0;
  while (lines >> name >> std::hex >> signals) {
    for (const int signal : {SIGINT, SIGQUIT, SIGUSR2, SIGCHLD}) {
      name += (signals >> (signal - 1) & 1) != 0 ? std::string(" ") + ::sigabbrev_np(signal) : "";
    }
    run.note("signals", name);
  }
}

void commands(Run& run) {
  const Ends ends = run.keep(makePipe(run.make));
  for (const char* const command : {"exit 3", "kill -TERM $$", "/nonexistent 2>/dev/null", "true", ""}) {
    run.note(command, statusText(run.call.system(command)));
  }
  run.got("system", run.call.system(nullptr));
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  tellSignals(run, ends);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  tellSignals(run, ends);
  const auto ignores = ::signal(SIGCHLD, SIG_IGN);
  run.got("system", run.call.system("exit 3"));  // takes its child, or not: as the kernel has it
  ::signal(SIGCHLD, ignores);
}

void pipes(Run& run) {
  const Ends ends = run.keep(makePipe(run.make));
  const std::string out = ">/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends[1]);
  FILE* const writes = run.call.popen(("cat " + out + "; exit 4").c_str(), "w");
  ASSERT_NE(writes, nullptr);
  std::fputs("text", writes);  // still in the buffer
  run.note("pclose", statusText(run.call.pclose(writes)));
  run.note("said", said(ends[0]));
  FILE* const reads = run.call.popen("echo word; exit 5", "r");
  ASSERT_NE(reads, nullptr);
  char word[16] = {};
  run.got("fgets", std::fgets(word, sizeof word, reads) != nullptr);
  run.note("word", word);
  run.note("pclose", statusText(run.call.pclose(reads)));
  FILE* const no_pipe = std::fopen("/dev/null", "r");
  ASSERT_NE(no_pipe, nullptr);
  run.got("pclose", run.call.pclose(no_pipe));
}

std::vector<Case> cases() {
  return {
    {"by_id", byId}, {"any_child", any}, {"by_group", byGroup}, {"with_info", withInfo}, {"by_descriptor", byDescriptor},
        {"stops", stops}, {"traced", traced}, {"without_waiting", withoutWaiting}, {"wrong_arguments", wrong},
#if !defined(SYLAR_ASAN) && !defined(SYLAR_TSAN)
        {"bad_pointers", badPointers},  // the sanitizers look at what has been written
#endif
        {"ignored_signal", ignoredSignal}, {"of_this_thread", ofThisThread}, {"clones", clones}, {"commands", commands},
        {"pipes_of_commands", pipes},
  };
}

class Children : public SameAsLibc {};

TEST_P(Children, HookedCallsGiveTheSame) { compare(GetParam()); }

INSTANTIATE_TEST_SUITE_P(SameAsLibc, Children, testing::ValuesIn(cases()), nameOf);

}  // namespace
}  // namespace sylar::test
