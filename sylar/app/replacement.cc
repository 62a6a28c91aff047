#include "sylar/app/replacement.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "sylar/base/fd.h"
#include "sylar/base/log.h"
#include "sylar/base/sys.h"
#include "sylar/net/inherited_listeners.h"
#include "sylar/thread.h"

namespace sylar::detail {
namespace {

constexpr int kFirst = 3;  // SD_LISTEN_FDS_START
// What an old process says besides: how many of the sockets, the first ones, have files that it would remove, and where further
// descriptors are.
constexpr const char* kWithFiles = "SYLAR_LISTEN_WITH_FILES";
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
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
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

/// posix_spawn(3), with no signal blocked.
class Spawn {
 public:
  Spawn() {
    check(::posix_spawn_file_actions_init(&m_actions), "posix_spawn");
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_init(&m_attributes);
    ::posix_spawnattr_setsigmask(&m_attributes, &none);
    ::posix_spawnattr_setflags(&m_attributes, POSIX_SPAWN_SETSIGMASK);
  }
  ~Spawn() {
    ::posix_spawn_file_actions_destroy(&m_actions);
    ::posix_spawnattr_destroy(&m_attributes);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  void move(int from, int to) { check(::posix_spawn_file_actions_adddup2(&m_actions, from, to), "posix_spawn"); }
  void closeFrom(int first) { check(::posix_spawn_file_actions_addclosefrom_np(&m_actions, first), "posix_spawn"); }
  pid_t start(const std::string& program, std::vector<std::string> words, std::vector<std::string> environment) {
    pid_t process;
    check(::posix_spawn(&process, program.c_str(), &m_actions, &m_attributes, pointersTo(words).data(),
                        pointersTo(environment).data()),
          program.c_str());
    return process;
  }

 private:
  posix_spawn_file_actions_t m_actions;
  posix_spawnattr_t m_attributes;
};

}  // namespace

// ---- The new process. --------------------------------------------------------------------------------------------------------

Predecessor::Predecessor() {
  const int count = takeNumber("LISTEN_FDS"), of = takeNumber("LISTEN_PID"), with_files = takeNumber(kWithFiles);
  ::unsetenv("LISTEN_FDNAMES");
  m_news = takeNumber(kNews);
  m_pid_file = takeNumber(kPidFile);
  for (const int fd : {m_news, m_pid_file}) {
    if (fd >= 0) closeOnExec(fd);
  }
  if (of != ::getpid() && m_news < 0) return;  // they are for another process
  for (int fd = kFirst; fd < kFirst + count; ++fd) {
    closeOnExec(fd);
    const Address::ptr address = inherited_listeners::add(fd);
    if (address == nullptr) log::warn("descriptor {}, which was left to this process, is no listening stream socket", fd);
    if (address != nullptr && fd < kFirst + with_files) m_files.push_back(address);
  }
}

Predecessor::~Predecessor() {
  if (m_news >= 0) ::close(m_news);
  if (m_pid_file >= 0) ::close(m_pid_file);
}

int Predecessor::takePidFile() { return std::exchange(m_pid_file, -1); }

std::vector<Address::ptr> Predecessor::relieve() {
  if (const size_t left = inherited_listeners::closeRest(); left > 0) {
    log::warn("{} listening sockets, which were left to this process, are on no address of the setting servers, and were closed",
              left);
  }
  if (m_news < 0) return {};
  if (::write(m_news, "u", 1) != 1) log::warn("the process that this one replaces has ended");
  ::close(std::exchange(m_news, -1));
  return std::move(m_files);
}

// ---- The old process. --------------------------------------------------------------------------------------------------------

Replacement::Replacement(const std::string& program, const std::vector<std::string>& arguments, const Legacy& legacy,
                         std::function<void(bool serves)> on_news) {
  int ends[2];
  check(static_cast<int>(-sys::call(SYS_pipe2, ends, O_CLOEXEC)), "pipe2");
  UniqueFd news(ends[0]);
  const UniqueFd their_news(ends[1]);

  // From kFirst on without gaps, by way of numbers that are above all of them.
  std::vector<int> given = legacy.listeners;
  given.push_back(their_news.get());
  if (legacy.pid_file >= 0) given.push_back(legacy.pid_file);
  const int above = kFirst + static_cast<int>(given.size());
  std::vector<UniqueFd> copies;
  Spawn spawn;
  for (const int fd : given) {
    const auto copy = static_cast<int>(sys::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, above));
    check(std::max(-copy, 0), "fcntl");
    spawn.move(copy, kFirst + static_cast<int>(copies.size()));
    copies.emplace_back(copy);
  }
  spawn.closeFrom(above);  // what is not meant for it
  const int behind = kFirst + static_cast<int>(legacy.listeners.size());
  std::vector<std::pair<std::string, std::string>> told{{"LISTEN_FDS", std::to_string(legacy.listeners.size())},
                                                        {kWithFiles, std::to_string(legacy.with_files)},
                                                        {kNews, std::to_string(behind)}};
  if (legacy.pid_file >= 0) told.emplace_back(kPidFile, std::to_string(behind + 1));
  m_process = spawn.start(program, arguments, environmentWith(told));
  try {
    m_follower = std::thread([this, fd = std::move(news), on_news = std::move(on_news)] { follow(fd.get(), on_news); });
  } catch (...) {
    ::kill(m_process, SIGKILL);
    ::waitpid(m_process, nullptr, 0);
    throw;
  }
}

/// Waits until the new process serves or has ended. On a thread of its own.
void Replacement::follow(int news, const std::function<void(bool serves)>& on_news) {
  Thread::SetName("replacement");
  char word;
  long got;
  do got = sys::call(SYS_read, news, &word, sizeof word);
  while (got == -EINTR);
  const bool serves = got == 1;
  const bool decided = leave(serves ? State::kServes : State::kFailed);
  if (!serves || !decided) {
    int status = 0;
    ::waitpid(m_process, &status, 0);
    if (decided) {
      log::error("process {}, which was to take over, has ended with status {}; this one goes on", m_process,
                 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }
  if (decided) on_news(serves);
  const std::lock_guard lock(m_mutex);
  m_known = true;
  m_changed.notify_all();
}

/// Leaves kStarts for `next`. Returns false if that was done before.
bool Replacement::leave(State next) {
  State starts = State::kStarts;
  return m_state.compare_exchange_strong(starts, next);
}

bool Replacement::end() {
  if (leave(State::kEnds)) ::kill(m_process, SIGTERM);
  return serves();
}

bool Replacement::await(Deadline deadline) {
  std::unique_lock lock(m_mutex);
  return m_changed.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline.ns())),
                              [this] { return m_known; });
}

Replacement::~Replacement() {
  end();
  {
    const std::lock_guard lock(m_mutex);
    if (!m_known && m_state == State::kEnds) ::kill(m_process, SIGKILL);
  }
  m_follower.join();
}

}  // namespace sylar::detail
