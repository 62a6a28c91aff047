// A program that changes its user and groups while it has threads. It knows POSIX and Linux, and not this library.
//
//   set_ids_program CALL WHERE
//
// CALL is one of kCalls; WHERE is main, thread, handler, child, or lookup, which is main after names have been looked up. Prints
// the call's result and errno, and the users and groups of the process's threads, each that there is once.
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kNobody = 65534;

const std::map<std::string, std::function<int()>> kCalls = {
    {"setuid", [] { return setuid(kNobody); }},
    {"setgid", [] { return setgid(kNobody); }},
    {"seteuid", [] { return seteuid(kNobody); }},
    {"setegid", [] { return setegid(kNobody); }},
    {"setreuid", [] { return setreuid(kNobody, kNobody); }},
    {"setregid", [] { return setregid(kNobody, kNobody); }},
    {"setresuid", [] { return setresuid(kNobody, kNobody, kNobody); }},
    {"setresgid", [] { return setresgid(kNobody, kNobody, kNobody); }},
    {"setgroups", [] { return setgroups(1, &kNobody); }},
    {"initgroups", [] { return initgroups("nobody", kNobody); }},
    {"unknown", [] { return initgroups("nobody's name", 1234); }},
    {"own", [] { return setresuid(getuid(), geteuid(), getuid()); }},
    {"refused", [] { return setuid(kNobody) != 0 ? -2 : setuid(0); }},
    {"all", [] { return setgroups(0, nullptr) != 0 ? -2
                        : setgid(kNobody) != 0     ? -3
                                                   : setuid(kNobody); }},
};

int (*g_call)();
int g_result;
int g_error;

void make() {
  errno = 0;
  g_result = g_call();
  g_error = errno;
}

std::set<std::string> identities() {
  std::set<std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string identity;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Uid:") || line.starts_with("Gid:") || line.starts_with("Groups:")) identity += line + " ";
    }
    if (!identity.empty()) found.insert(identity);  // else the thread has ended
  }
  return found;
}

void tell() {
  std::printf("%d %s\n", g_result, std::strerror(g_error));
  for (const std::string& identity : identities()) std::printf("%s\n", identity.c_str());
  std::fflush(stdout);
}

int makeIn(const std::string& where) {
  if (where == "thread") {
    std::thread(make).join();
  } else if (where == "handler") {
    std::signal(SIGUSR1, [](int) { make(); });
    std::raise(SIGUSR1);
  } else if (where == "child") {
    const pid_t child = fork();
    if (child == 0) {
      std::thread([] {}).join();
      make();
      tell();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  } else {
    if (where == "lookup") std::printf("%s %s\n", getpwnam("nobody")->pw_name, getgrgid(0)->gr_name);
    make();
  }
  tell();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto call = kCalls.find(argc == 3 ? argv[1] : "");
  if (call == kCalls.end()) {
    for (const auto& [name, unused] : kCalls) std::printf("%s\n", name.c_str());
    return 0;
  }
  static const std::function<int()> s_call = call->second;
  g_call = [] { return s_call(); };

  sem_t end, begun;
  sem_init(&end, 0, 0);
  sem_init(&begun, 0, 0);
  std::vector<std::thread> threads;  // one waits, one sleeps all the time, one computes until it is told
  threads.emplace_back([&] {
    sem_post(&begun);
    sem_wait(&end);
  });
  threads.emplace_back([&] {
    sem_post(&begun);
    while (sem_trywait(&end) != 0) usleep(100);
  });
  threads.emplace_back([&] {
    sem_post(&begun);
    while (sem_trywait(&end) != 0) sched_yield();
  });
  for (size_t i = 0; i < threads.size(); ++i) sem_wait(&begun);
  const int status = makeIn(argv[2]);
  for (size_t i = 0; i < threads.size(); ++i) sem_post(&end);
  for (std::thread& thread : threads) thread.join();
  return status;
}
