#include "sylar/app/replacement.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "sylar/base/fd.h"
#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/net/inherited_listeners.h"

namespace sylar {
namespace {

constexpr int kFirst = 3;  // SD_LISTEN_FDS_START
// What an old process says of descriptors behind the sockets.
constexpr const char* kNews = "SYLAR_NEWS_FD";
constexpr const char* kPidFile = "SYLAR_PID_FILE_FD";

/// Returns the number in a variable of the environment, and removes the variable. Returns -1 if there is none.
int takeNumber(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return -1;
  int number = -1;
  const std::string_view digits(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) number = -1;
  ::unsetenv(name);
  return number;
}

void closeOnExec(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

/// This process' environment with `more` variables in place of those of the same name.
std::vector<std::string> environmentWith(const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    const auto name = text.substr(0, text.find('='));
    if (std::ranges::none_of(more, [&](const auto& each) { return each.first == name; })) all.emplace_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(name + '=' + value);
  return all;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::system_category(), what);
}

/// The actions of posix_spawn(3).
class SpawnActions {
 public:
  SpawnActions() { check(::posix_spawn_file_actions_init(&m_actions), "posix_spawn"); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&m_actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  void move(int from, int to) { check(::posix_spawn_file_actions_adddup2(&m_actions, from, to), "posix_spawn"); }
  const posix_spawn_file_actions_t* get() const { return &m_actions; }

 private:
  posix_spawn_file_actions_t m_actions;
};

}  // namespace

// ---- The new process. --------------------------------------------------------------------------------------------------------

Predecessor::Predecessor() {
  const int count = takeNumber("LISTEN_FDS"), of = takeNumber("LISTEN_PID");
  ::unsetenv("LISTEN_FDNAMES");
  m_news = takeNumber(kNews);
  m_pid_file = takeNumber(kPidFile);
  for (const int fd : {m_news, m_pid_file}) {
    if (fd >= 0) closeOnExec(fd);
  }
  if (of != ::getpid() && m_news < 0) return;  // they are for another process
  for (int fd = kFirst; fd < kFirst + count; ++fd) {
    closeOnExec(fd);
    if (!inherited_listeners::add(fd))
      log::warn("descriptor {}, which was left to this process, is no listening stream socket", fd);
  }
}

Predecessor::~Predecessor() {
  if (m_news >= 0) ::close(m_news);
  if (m_pid_file >= 0) ::close(m_pid_file);
}

int Predecessor::takePidFile() { return std::exchange(m_pid_file, -1); }

void Predecessor::relieve() {
  if (const size_t left = inherited_listeners::closeRest(); left > 0) {
    log::warn("{} listening sockets, which were left to this process, are on no address of the setting servers, and were closed",
              left);
  }
  if (m_news < 0) return;
  if (::write(m_news, "u", 1) != 1) log::warn("the process that this one replaces has ended");
  ::close(std::exchange(m_news, -1));
}

// ---- The old process. --------------------------------------------------------------------------------------------------------

Replacement::Replacement(const std::string& program, const std::vector<std::string>& arguments, const std::vector<int>& listeners,
                         int pid_file, std::function<void()> on_up) {
  int ends[2];
  check(static_cast<int>(-sys::call(SYS_pipe2, ends, O_CLOEXEC)), "pipe2");
  UniqueFd news(ends[0]);
  const UniqueFd their_news(ends[1]);

  // From kFirst on without gaps, by way of numbers that are above all of them.
  std::vector<int> given = listeners;
  given.push_back(their_news.get());
  if (pid_file >= 0) given.push_back(pid_file);
  const int above = kFirst + static_cast<int>(given.size());
  std::vector<UniqueFd> copies;
  SpawnActions actions;
  for (const int fd : given) {
    const auto copy = static_cast<int>(sys::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, above));
    check(std::max(-copy, 0), "fcntl");
    actions.move(copy, kFirst + static_cast<int>(copies.size()));
    copies.emplace_back(copy);
  }
  const int behind = kFirst + static_cast<int>(listeners.size());
  std::vector<std::pair<std::string, std::string>> told{{"LISTEN_FDS", std::to_string(listeners.size())},
                                                        {kNews, std::to_string(behind)}};
  if (pid_file >= 0) told.emplace_back(kPidFile, std::to_string(behind + 1));
  std::vector<std::string> environment = environmentWith(told), words = arguments;

  check(::posix_spawn(&m_process, program.c_str(), actions.get(), nullptr, pointersTo(words).data(),
                      pointersTo(environment).data()),
        program.c_str());
  try {
    m_follower = std::thread([this, fd = std::move(news), on_up = std::move(on_up)] { follow(fd.get(), on_up); });
  } catch (...) {
    ::kill(m_process, SIGTERM);
    ::waitpid(m_process, nullptr, 0);
    throw;
  }
}

/// Waits until the new process serves or has ended. On a thread of its own.
void Replacement::follow(int news, const std::function<void()>& on_up) {
  char word;
  long got;
  do got = sys::call(SYS_read, news, &word, sizeof word);
  while (got == -EINTR);
  if (got == 1) {
    m_state = State::kServes;
    on_up();
    return;
  }
  int status = 0;
  ::waitpid(m_process, &status, 0);
  log::error("process {}, which was to take over, has ended with status {}; this one goes on", m_process,
             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  m_state = State::kFailed;
}

Replacement::~Replacement() {
  if (m_state == State::kStarts) ::kill(m_process, SIGTERM);
  m_follower.join();
}

}  // namespace sylar
