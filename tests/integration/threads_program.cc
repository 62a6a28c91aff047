// Threads as programs use them, for comparison of a native run with one in which they are fibers: each case says what it has seen.
// The cases come from POSIX and the man pages. None depends on speed: what must wait, waits for an event; what must expire, expires
// soon; what must not, would take half a minute.
//
//   threads_program [NAME]...        runs these cases, or all: a line `NAME: what it has seen` for each
//   threads_program --list           the names of the cases
//   threads_program --tasks THREADS  how many kernel threads the program has with as many live threads beside main
//   threads_program --part NAME      a program of its own that a case starts
#include <aio.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <climits>
#include <clocale>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/support/coroutine.h"

namespace {

using namespace std::chrono_literals;

// ---- What a case says --------------------------------------------------------------------------------------------------------

/// What is said of a value: a number, yes or no, or a text.
struct Word {
  Word(std::string value) : text(std::move(value)) {}
  Word(const char* value) : text(value) {}
  Word(bool value) : text(value ? "yes" : "no") {}
  template <std::integral Integer>
  Word(Integer value) : text(std::to_string(value)) {}
  std::string text;
};

/// The words with blanks between them. What is in the braces is evaluated from left to right.
std::string text(std::initializer_list<Word> words) {
  std::string line;
  const char* blank = "";
  for (const Word& word : words) line += std::exchange(blank, " ") + word.text;
  return line;
}

/// The name of an error number, as pthread functions return it.
std::string error(int number) {
  const char* const name = strerrorname_np(number);
  return number == 0 ? "0" : name == nullptr ? std::to_string(number) : name;
}

/// What a call that sets errno has returned.
std::string result(long value) { return value == -1 ? error(errno) : std::to_string(value); }

void must(int number) {
  if (number != 0) throw std::runtime_error(error(number));
}

std::mutex g_said_mutex;
std::string g_said;

/// Adds to what said() returns: what happens where no result can be returned from.
void say(const char* what) {
  const std::lock_guard<std::mutex> lock(g_said_mutex);
  g_said += (g_said.empty() ? "" : ",") + std::string(what);
}

void sayArgument(void* what) { say(static_cast<const char*>(what)); }

std::string said() {
  const std::lock_guard<std::mutex> lock(g_said_mutex);
  return std::exchange(g_said, {});
}

/// Something of a frame that says when it is unwound.
struct Frame {
  explicit Frame(const char* what) : name(what) {}
  ~Frame() { say(name); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  const char* name;
};

using Function = std::string (*)();
struct Case {
  const char* name;
  Function run;
};

// ---- Threads, and what they wait for -----------------------------------------------------------------------------------------

constexpr int kLongMs = 30'000;
constexpr int kShortMs = 3;

void pauseMs(int ms) { ::usleep(static_cast<useconds_t>(ms) * 1000); }

/// The time of `clock` in `ms`, which may be past.
timespec timeIn(int ms, clockid_t clock = CLOCK_REALTIME) {
  timespec time{};
  ::clock_gettime(clock, &time);
  const int64_t ns = time.tv_nsec + int64_t{ms} * 1'000'000 + 1'000'000'000'000;
  time.tv_sec += ns / 1'000'000'000 - 1'000;
  time.tv_nsec = ns % 1'000'000'000;
  return time;
}

timespec nowhere() { return {0, 1'000'000'000}; }  // no time has as many nanoseconds

void* value(intptr_t number) { return reinterpret_cast<void*>(number); }
intptr_t number(void* value) { return reinterpret_cast<intptr_t>(value); }

using Body = std::function<void*()>;

void* runBody(void* argument) {
  const std::unique_ptr<Body> body(static_cast<Body*>(argument));
  return (*body)();
}

/// Starts a thread that runs `function`, which returns nothing or a number.
template <class Run>
pthread_t start(Run run, const pthread_attr_t* attributes = nullptr) {
  auto body = std::make_unique<Body>([run]() mutable -> void* {
    if constexpr (std::is_void_v<std::invoke_result_t<Run&>>) {
      run();
      return nullptr;
    } else {
      return value(run());
    }
  });
  pthread_t thread{};
  must(::pthread_create(&thread, attributes, runBody, body.get()));
  static_cast<void>(body.release());  // the thread's
  return thread;
}

/// Joins, and says what the thread has returned.
std::string joined(pthread_t thread) {
  void* returned = nullptr;
  must(::pthread_join(thread, &returned));
  return returned == PTHREAD_CANCELED ? "canceled" : std::to_string(number(returned));
}

template <class Run>
std::vector<pthread_t> startMany(int count, Run run) {
  std::vector<pthread_t> threads;
  for (int i = 0; i < count; ++i) threads.push_back(start([run, i]() mutable { return run(i); }));
  return threads;
}

/// The sum of what the threads have returned.
intptr_t joinMany(const std::vector<pthread_t>& threads) {
  intptr_t sum = 0;
  for (const pthread_t thread : threads) sum += std::stol(joined(thread));
  return sum;
}

template <class Run>
intptr_t runMany(int count, Run run) {
  return joinMany(startMany(count, run));
}

class Attributes {
 public:
  Attributes() { must(::pthread_attr_init(&m_attributes)); }
  ~Attributes() { ::pthread_attr_destroy(&m_attributes); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  pthread_attr_t* get() { return &m_attributes; }

 private:
  pthread_attr_t m_attributes{};
};

class Semaphore {
 public:
  explicit Semaphore(unsigned count = 0) { ::sem_init(&m_semaphore, 0, count); }
  ~Semaphore() { ::sem_destroy(&m_semaphore); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  sem_t* get() { return &m_semaphore; }
  void post() { ::sem_post(&m_semaphore); }
  void wait(int times = 1) {
    for (; times > 0; --times) {
      while (::sem_wait(&m_semaphore) != 0) {
      }
    }
  }

 private:
  sem_t m_semaphore{};
};

class Mutex {
 public:
  explicit Mutex(int type = PTHREAD_MUTEX_NORMAL, int robust = PTHREAD_MUTEX_STALLED, int protocol = PTHREAD_PRIO_NONE) {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    must(::pthread_mutexattr_settype(&attributes, type));
    must(::pthread_mutexattr_setrobust(&attributes, robust));
    must(::pthread_mutexattr_setprotocol(&attributes, protocol));
    must(::pthread_mutex_init(&m_mutex, &attributes));
    ::pthread_mutexattr_destroy(&attributes);
  }
  ~Mutex() { ::pthread_mutex_destroy(&m_mutex); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  pthread_mutex_t* get() { return &m_mutex; }
  int lock() { return ::pthread_mutex_lock(&m_mutex); }
  int tryLock() { return ::pthread_mutex_trylock(&m_mutex); }
  int unlock() { return ::pthread_mutex_unlock(&m_mutex); }

 private:
  pthread_mutex_t m_mutex{};
};

class Condition {
 public:
  explicit Condition(clockid_t clock = CLOCK_REALTIME) {
    pthread_condattr_t attributes;
    ::pthread_condattr_init(&attributes);
    must(::pthread_condattr_setclock(&attributes, clock));
    must(::pthread_cond_init(&m_condition, &attributes));
    ::pthread_condattr_destroy(&attributes);
  }
  ~Condition() { ::pthread_cond_destroy(&m_condition); }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  pthread_cond_t* get() { return &m_condition; }
  void wait(Mutex& mutex) { ::pthread_cond_wait(&m_condition, mutex.get()); }
  void signal() { ::pthread_cond_signal(&m_condition); }
  void broadcast() { ::pthread_cond_broadcast(&m_condition); }

 private:
  pthread_cond_t m_condition{};
};

class Barrier {
 public:
  explicit Barrier(unsigned count) { must(::pthread_barrier_init(&m_barrier, nullptr, count)); }
  ~Barrier() { ::pthread_barrier_destroy(&m_barrier); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  int wait() { return ::pthread_barrier_wait(&m_barrier); }

 private:
  pthread_barrier_t m_barrier{};
};

class Pipe {
 public:
  Pipe() {
    if (::pipe(m_ends) != 0) throw std::runtime_error(error(errno));
  }
  ~Pipe() {
    ::close(m_ends[0]);
    closeInput();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int output() const { return m_ends[0]; }
  int input() const { return m_ends[1]; }
  void closeInput() {
    if (m_ends[1] >= 0) ::close(m_ends[1]);
    m_ends[1] = -1;
  }
  /// Reads one byte.
  char get() const {
    char byte = '-';
    return ::read(m_ends[0], &byte, 1) == 1 ? byte : '-';
  }
  void put(char byte = 'x') const {
    if (::write(m_ends[1], &byte, 1) != 1) throw std::runtime_error(error(errno));
  }

 private:
  int m_ends[2]{};
};

/// What another thread gets from `call`.
template <class Call>
std::string elsewhere(Call call) {
  std::string seen;
  joined(start([&] { seen = text({call()}); }));
  return seen;
}

// ---- Programs of their own ---------------------------------------------------------------------------------------------------

std::string g_program;

/// How a process has ended.
std::string ended(int status) {
  return WIFEXITED(status) ? text({"exit", WEXITSTATUS(status)}) : text({"signal", sigabbrev_np(WTERMSIG(status))});
}

std::string reaped(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child ? ended(status) : error(errno);
}

/// Starts this program for one of kParts: what it has printed, and how it has ended.
std::string part(const char* name) {
  Pipe output;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output.input(), 1);
  ::posix_spawn_file_actions_addclose(&actions, output.output());
  std::string program = g_program, option = "--part", argument = name;
  char* arguments[] = {program.data(), option.data(), argument.data(), nullptr};
  pid_t child = 0;
  must(::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ));
  ::posix_spawn_file_actions_destroy(&actions);
  output.closeInput();
  std::string printed;
  for (char byte; ::read(output.output(), &byte, 1) == 1;) printed += byte == '\n' ? '|' : byte;
  return text({printed, reaped(child)});
}

// ---- Creation ----------------------------------------------------------------------------------------------------------------

void* returnsArgument(void* argument) { return argument; }

/// The number of threads in a tree of this depth, each of which joins its two children.
intptr_t tree(int depth) {
  if (depth == 0) return 1;
  return 1 + runMany(2, [depth](int) { return tree(depth - 1); });
}

intptr_t chain(int length) {
  if (length == 0) return 0;
  return 1 + std::stol(joined(start([length] { return chain(length - 1); })));
}

const Case kCreation[] = {
    {"join returns the value", [] { return joined(start([] { return 42; })); }},
    {"the argument arrives",
     [] {
       pthread_t thread{};
       const int created = ::pthread_create(&thread, nullptr, returnsArgument, value(7));
       return text({error(created), joined(thread)});
     }},
    {"join without a place for the value", [] { return error(::pthread_join(start([] { return 1; }), nullptr)); }},
    {"self is what create has returned",
     [] {
       Semaphore created;
       pthread_t thread{};
       bool same = false;
       thread = start([&] {
         created.wait();
         same = ::pthread_equal(thread, ::pthread_self()) != 0;
       });
       created.post();
       joined(thread);
       return text({same});
     }},
    {"self is not main",
     [] {
       const pthread_t main = ::pthread_self();
       return text(
           {::pthread_equal(main, ::pthread_self()) != 0, elsewhere([&] { return ::pthread_equal(main, ::pthread_self()); })});
     }},
    {"join of oneself", [] { return elsewhere([] { return error(::pthread_join(::pthread_self(), nullptr)); }); }},
    {"join of a detached thread",
     [] {
       static Semaphore go, over;  // which outlive the thread's last look at them
       const pthread_t thread = start([] {
         go.wait();
         over.post();
       });
       const int first = ::pthread_detach(thread), second = ::pthread_detach(thread), join = ::pthread_join(thread, nullptr);
       go.post();
       over.wait();
       return text({error(first), error(second), error(join)});
     }},
    {"a thread created detached",
     [] {
       Attributes attributes;
       ::pthread_attr_setdetachstate(attributes.get(), PTHREAD_CREATE_DETACHED);
       static Semaphore go, over;
       const pthread_t thread = start(
           [] {
             go.wait();
             over.post();
           },
           attributes.get());
       const int join = ::pthread_join(thread, nullptr);
       go.post();
       over.wait();
       return error(join);
     }},
    {"a thread detaches itself",
     [] {
       static Semaphore over;
       static int detached;
       start([] {
         detached = ::pthread_detach(::pthread_self());
         over.post();
       });
       over.wait();
       return error(detached);
     }},
    {"100 detached threads",
     [] {
       static Semaphore over;
       for (int i = 0; i < 100; ++i) must(::pthread_detach(start([] { over.post(); })));
       over.wait(100);
       return text({"all"});
     }},
    {"200 threads at once",
     [] {
       Barrier all(200);
       return text({runMany(200, [&](int i) {
         all.wait();
         return i;
       })});
     }},
    {"2000 threads in sequence",
     [] {
       intptr_t sum = 0;
       for (int i = 0; i < 2000; ++i) sum += std::stol(joined(start([i] { return i; })));
       return text({sum});
     }},
    {"threads create threads", [] { return text({tree(6)}); }},
    {"a chain of 100 threads", [] { return text({chain(100)}); }},
    {"another than the creator joins",
     [] {
       const pthread_t thread = start([] { return 5; });
       return elsewhere([thread] { return joined(thread); });
     }},
    {"the creator ends first",
     [] {
       Semaphore go;
       pthread_t child{};
       joined(start([&] {
         child = start([&] {
           go.wait();
           return 6;
         });
       }));
       go.post();
       return joined(child);
     }},
    {"join after the end",
     [] {
       Semaphore over;
       const pthread_t thread = start([&] {
         over.post();
         return 8;
       });
       over.wait();
       pauseMs(20);
       return joined(thread);
     }},
    {"joins in the reverse order",
     [] {
       std::vector<pthread_t> threads = startMany(20, [](int i) { return i; });
       std::reverse(threads.begin(), threads.end());
       std::string values;
       for (const pthread_t thread : threads) values += joined(thread) + ' ';
       return values + "end";
     }},
    {"too large a stack",
     [] {
       Attributes attributes;
       const int set = ::pthread_attr_setstacksize(attributes.get(), size_t{1} << 60);
       pthread_t thread{};
       return text({error(set), error(::pthread_create(&thread, attributes.get(), returnsArgument, nullptr))});
     }},
    {"ids of the kernel differ",
     [] {
       std::mutex mutex;
       std::set<pid_t> ids{::getpid()};
       Barrier all(20);
       runMany(20, [&](int) {
         all.wait();
         {
           const std::lock_guard<std::mutex> lock(mutex);
           ids.insert(::gettid());
         }
         all.wait();
         return 0;
       });
       return text({ids.size(), ::gettid() == ::getpid()});
     }},
    {"the process is the same", [] { return text({elsewhere([] { return ::getpid(); }) == text({::getpid()})}); }},
    {"the working directory is shared",
     [] {
       const std::filesystem::path before = std::filesystem::current_path();
       joined(start([] { return ::chdir("/"); }));
       const std::string seen = std::filesystem::current_path();
       std::filesystem::current_path(before);
       return seen;
     }},
};

// ---- Attributes --------------------------------------------------------------------------------------------------------------

/// The stack of the calling thread, and whether a variable of its own is in it.
struct Stack {
  Stack() {
    pthread_attr_t attributes;
    must(::pthread_getattr_np(::pthread_self(), &attributes));
    void* bottom = nullptr;
    ::pthread_attr_getstack(&attributes, &bottom, &size);
    ::pthread_attr_getguardsize(&attributes, &guard);
    ::pthread_attr_getdetachstate(&attributes, &detached);
    ::pthread_attr_destroy(&attributes);
    const uintptr_t here = reinterpret_cast<uintptr_t>(&attributes), low = reinterpret_cast<uintptr_t>(bottom);
    holds = here > low && here < low + size;
  }
  size_t size = 0;
  size_t guard = 0;
  int detached = -1;
  bool holds = false;
};

constexpr size_t kLargeVariable = 64 * 1024;

/// Room for the smallest stack and for the thread_local variables of this program, which libc takes from it.
size_t smallStack() { return static_cast<size_t>(PTHREAD_STACK_MIN) + kLargeVariable + 4096; }

size_t pageSize() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

/// Uses `kib` KiB of stack.
__attribute__((noinline)) int recursion(int kib) {
  volatile char frame[1024] = {static_cast<char>(kib)};
  return kib == 0 ? frame[0] : recursion(kib - 1) + (frame[0] == static_cast<char>(kib) ? 1 : 0);
}

int processors() {
  cpu_set_t set;
  return ::pthread_getaffinity_np(::pthread_self(), sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

const Case kAttributes[] = {
    {"the default attributes",
     [] {
       Attributes attributes;
       int detached = -1, scope = -1, inherit = -1, policy = -1;
       size_t guard = 0;
       ::pthread_attr_getdetachstate(attributes.get(), &detached);
       ::pthread_attr_getscope(attributes.get(), &scope);
       ::pthread_attr_getinheritsched(attributes.get(), &inherit);
       ::pthread_attr_getschedpolicy(attributes.get(), &policy);
       ::pthread_attr_getguardsize(attributes.get(), &guard);
       return text({detached == PTHREAD_CREATE_JOINABLE, scope == PTHREAD_SCOPE_SYSTEM, inherit == PTHREAD_INHERIT_SCHED,
                    policy == SCHED_OTHER, guard == pageSize()});
     }},
    {"what attributes refuse",
     [] {
       Attributes attributes;
       return text({error(::pthread_attr_setstacksize(attributes.get(), PTHREAD_STACK_MIN - 1)),
                    error(::pthread_attr_setdetachstate(attributes.get(), 99)),
                    error(::pthread_attr_setscope(attributes.get(), PTHREAD_SCOPE_PROCESS)),
                    error(::pthread_attr_setschedpolicy(attributes.get(), 99)),
                    error(::pthread_attr_setinheritsched(attributes.get(), 99))});
     }},
    {"a stack of the size that was asked for",
     [] {
       Attributes attributes;
       must(::pthread_attr_setstacksize(attributes.get(), 1 << 20));
       std::string seen;
       joined(start(
           [&] {
             const Stack stack;
             seen = text({stack.size >= 1 << 20, stack.holds, stack.detached == PTHREAD_CREATE_JOINABLE});
           },
           attributes.get()));
       return seen;
     }},
    {"a guard of the size that was asked for",
     [] {
       Attributes attributes;
       must(::pthread_attr_setguardsize(attributes.get(), 16 * pageSize()));
       std::string seen;
       joined(start([&] { seen = text({Stack().guard / pageSize()}); }, attributes.get()));
       return seen;
     }},
    {"a stack without a guard",
     [] {
       Attributes attributes;
       must(::pthread_attr_setguardsize(attributes.get(), 0));
       std::string seen;
       joined(start([&] { seen = text({Stack().guard, recursion(100)}); }, attributes.get()));
       return seen;
     }},
    {"the default stack",
     [] {
       pthread_attr_t defaults;
       ::pthread_getattr_default_np(&defaults);
       size_t size = 0;
       ::pthread_attr_getstacksize(&defaults, &size);
       ::pthread_attr_destroy(&defaults);
       return text({elsewhere([size] { return Stack().size >= size; }), elsewhere([] { return Stack().holds; })});
     }},
    {"another default stack",
     [] {
       pthread_attr_t before;
       ::pthread_getattr_default_np(&before);
       Attributes attributes;
       must(::pthread_attr_setstacksize(attributes.get(), 20 << 20));
       const int set = ::pthread_setattr_default_np(attributes.get());
       const std::string large = elsewhere([] { return Stack().size >= 20 << 20; });
       ::pthread_setattr_default_np(&before);
       ::pthread_attr_destroy(&before);
       return text({error(set), large});
     }},
    {"main's stack", [] { return text({Stack().holds}); }},
    {"a thread on memory of the program",
     [] {
       constexpr size_t kSize = 1 << 20;
       void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       std::string seen;
       for (int i = 0; i < 3; ++i) {
         Attributes attributes;
         must(::pthread_attr_setstack(attributes.get(), memory, kSize));
         const pthread_t thread = start(
             [&] {
               char here = 0;
               const ptrdiff_t offset = &here - static_cast<char*>(memory);
               pauseMs(1);
               seen += text({offset > 0 && offset < ptrdiff_t{kSize}, Stack().size, recursion(500)}) + ' ';
               return 9;
             },
             attributes.get());
         seen += joined(thread) + ' ';
         std::memset(memory, 0xff, kSize);
       }
       return text({seen, result(::munmap(memory, kSize))});
     }},
    {"the smallest stack",
     [] {
       Attributes attributes;
       must(::pthread_attr_setstacksize(attributes.get(), smallStack()));
       pthread_t thread{};
       must(::pthread_create(&thread, attributes.get(), returnsArgument, value(3)));
       return joined(thread);
     }},
    {"a small stack waits",
     [] {
       Attributes attributes;
       must(::pthread_attr_setstacksize(attributes.get(), smallStack() + 16 * 1024));
       Semaphore go;
       const pthread_t thread = start(
           [&] {
             go.wait();
             pauseMs(1);
             return 4;
           },
           attributes.get());
       go.post();
       return joined(thread);
     }},
    {"deep recursion",
     [] {
       Attributes attributes;
       must(::pthread_attr_setstacksize(attributes.get(), 32 << 20));
       return text({joined(start([] { return recursion(6 << 10); })),
                    joined(start([] { return recursion(24 << 10); }, attributes.get()))});
     }},
    {"an overflow of the stack", [] { return part("overflow"); }},
    {"a thread sees that it is detached",
     [] {
       static Semaphore go, over;
       static int detached;
       const pthread_t thread = start([] {
         go.wait();
         detached = Stack().detached;
         over.post();
       });
       ::pthread_detach(thread);
       go.post();
       over.wait();
       return text({detached == PTHREAD_CREATE_DETACHED});
     }},
    {"a mask of signals as an attribute",
     [] {
       Attributes attributes;
       sigset_t mask;
       ::sigemptyset(&mask);
       ::sigaddset(&mask, SIGUSR2);
       must(::pthread_attr_setsigmask_np(attributes.get(), &mask));
       std::string seen;
       joined(start(
           [&] {
             sigset_t now;
             ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
             seen = text({::sigismember(&now, SIGUSR2), ::sigismember(&now, SIGUSR1)});
           },
           attributes.get()));
       return seen;
     }},
    {"processors as an attribute",
     [] {
       cpu_set_t all, one;
       must(::pthread_getaffinity_np(::pthread_self(), sizeof all, &all));
       CPU_ZERO(&one);
       for (size_t i = 0; CPU_COUNT(&one) == 0; ++i) {
         if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
       }
       Attributes attributes;
       must(::pthread_attr_setaffinity_np(attributes.get(), sizeof one, &one));
       std::string seen;
       joined(start([&] { seen = text({processors()}); }, attributes.get()));
       return text({seen, processors() == CPU_COUNT(&all)});
     }},
    {"a policy as an attribute",
     [] {
       Attributes attributes;
       sched_param parameters{};
       ::pthread_attr_setinheritsched(attributes.get(), PTHREAD_EXPLICIT_SCHED);
       ::pthread_attr_setschedpolicy(attributes.get(), SCHED_OTHER);
       must(::pthread_attr_setschedparam(attributes.get(), &parameters));
       return joined(start([] { return 2; }, attributes.get()));
     }},
};

// ---- Variables of threads ----------------------------------------------------------------------------------------------------

thread_local int t_zero;
thread_local int t_seven = 7;
thread_local std::array<char, kLargeVariable> t_large;

std::atomic<int> g_made, g_unmade;

/// Says its name at the thread's end, and counts.
struct Kept {
  Kept() { ++g_made; }
  ~Kept() {
    ++g_unmade;
    if (name != nullptr) say(name);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  const char* name = nullptr;
};

Kept& keptFirst() {
  thread_local Kept kept;
  return kept;
}
Kept& keptSecond() {
  thread_local Kept kept;
  return kept;
}

struct WaitsAtItsEnd {
  ~WaitsAtItsEnd() {
    pauseMs(2);
    say("waited");
  }
  bool used = false;
};
thread_local WaitsAtItsEnd t_waits;

int countKept(int threads, bool use) {
  g_made = g_unmade = 0;
  runMany(threads, [use](int) {
    if (use) keptFirst().name = nullptr;
    return 0;
  });
  return g_made * 100 + g_unmade;
}

const Case kVariables[] = {
    {"a thread_local number",
     [] {
       t_zero = 1;
       const std::string other = elsewhere([] { return ++t_zero; });
       return text({other, t_zero});
     }},
    {"a thread_local number with a value",
     [] {
       return text({runMany(10, [](int i) { return t_seven += i; }), t_seven});
     }},
    {"thread_locals over waits",
     [] {
       return text({runMany(20, [](int i) {
         for (int round = 0; round < 20; ++round) {
           t_zero = i;
           ::sched_yield();
           if (t_zero != i) return 1;
         }
         pauseMs(1);
         return t_zero == i ? 0 : 1;
       })});
     }},
    {"a large thread_local is zero",
     [] {
       return text({runMany(10, [](int) {
         const long sum = std::accumulate(t_large.begin(), t_large.end(), 0L);
         t_large.fill(1);
         return sum;
       })});
     }},
    {"addresses of a thread_local differ",
     [] {
       std::array<int*, 10> addresses{};
       Barrier all(10);
       runMany(10, [&](int i) {
         addresses[static_cast<size_t>(i)] = &t_zero;
         all.wait();
         return 0;
       });
       return text({std::set<int*>(addresses.begin(), addresses.end()).size()});
     }},
    {"constructors and destructors of a thread_local",
     [] {
       return text({countKept(10, true), countKept(10, false)});
     }},
    {"destructors of thread_locals in the reverse order",
     [] {
       joined(start([] {
         keptFirst().name = "first";
         keptSecond().name = "second";
       }));
       joined(start([] {
         keptSecond().name = "second";
         keptFirst().name = "first";
       }));
       return said();
     }},
    {"the destructor of a thread_local waits",
     [] {
       runMany(3, [](int) {
         t_waits.used = true;
         return 0;
       });
       return said();
     }},
    {"thread_locals after pthread_exit",
     [] {
       const std::string returned = joined(start([] {
         keptFirst().name = "variable";
         const Frame frame("frame");
         ::pthread_exit(value(3));
       }));
       return text({returned, said()});
     }},
    {"thread_locals of a canceled thread",
     [] {
       const pthread_t thread = start([] {
         keptFirst().name = "variable";
         ::pause();
       });
       ::pthread_cancel(thread);
       const std::string returned = joined(thread);
       return text({returned, said()});
     }},
    {"thread_locals before values of keys",
     [] {
       pthread_key_t key{};
       must(::pthread_key_create(&key, sayArgument));
       joined(start([key] {
         static char name[] = "key";
         ::pthread_setspecific(key, name);
         keptFirst().name = "variable";
       }));
       ::pthread_key_delete(key);
       return said();
     }},
    {"thread_locals of main at exit", [] { return part("thread_locals of main"); }},
    {"errno of threads",
     [] {
       errno = ENOENT;
       const std::string other = elsewhere([] {
         const int before = errno;
         ::close(-1);
         return text({before, error(errno)});
       });
       return text({other, error(errno)});
     }},
    {"errno over yields",
     [] {
       return text({runMany(10, [](int i) {
         errno = 100 + i;
         for (int round = 0; round < 20; ++round) ::sched_yield();
         return errno == 100 + i ? 0 : 1;
       })});
     }},
    {"the locale of a thread",
     [] {
       const locale_t locale = ::newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
       const std::string other = elsewhere([locale] {
         ::uselocale(locale);
         pauseMs(1);
         return MB_CUR_MAX;
       });
       ::freelocale(locale);
       return text({other, MB_CUR_MAX, ::uselocale(nullptr) == LC_GLOBAL_LOCALE});
     }},
    {"the rounding of a thread",
     [] {
       const std::string other = elsewhere([] {
         const int before = std::fegetround();
         std::fesetround(FE_UPWARD);
         pauseMs(1);
         return text({before == FE_TONEAREST, std::fegetround() == FE_UPWARD});
       });
       return text({other, std::fegetround() == FE_TONEAREST});
     }},
};

// ---- Keys --------------------------------------------------------------------------------------------------------------------

pthread_key_t g_key, g_other_key;
std::atomic<int> g_destroyed;

void countDestroyed(void*) { ++g_destroyed; }

void setAgain(void* value) {
  ++g_destroyed;
  ::pthread_setspecific(g_key, value);
}

void setOther(void* value) {
  say("first");
  ::pthread_setspecific(g_other_key, value);
}

void waitAtTheEnd(void* value) {
  say(::pthread_getspecific(g_key) == nullptr ? "null" : "set");
  pauseMs(2);
  say(::pthread_equal(*static_cast<pthread_t*>(value), ::pthread_self()) != 0 ? "same thread" : "another thread");
}

/// Runs `run` with g_key made; says how many values were destroyed.
template <class Run>
std::string withKey(void (*destructor)(void*), Run run) {
  g_destroyed = 0;
  must(::pthread_key_create(&g_key, destructor));
  run();
  ::pthread_key_delete(g_key);
  return text({"destroyed", g_destroyed.load()});
}

const Case kKeys[] = {
    {"values of a key",
     [] {
       std::string seen;
       withKey(nullptr, [&] {
         ::pthread_setspecific(g_key, value(1));
         seen = text({runMany(10,
                              [](int i) {
                                const bool null = ::pthread_getspecific(g_key) == nullptr;
                                ::pthread_setspecific(g_key, value(i));
                                ::sched_yield();
                                return number(::pthread_getspecific(g_key)) + (null ? 0 : 1000);
                              }),
                      number(::pthread_getspecific(g_key))});
       });
       return seen;
     }},
    {"destructors of a key",
     [] {
       return withKey(countDestroyed, [] { runMany(10, [](int i) { return ::pthread_setspecific(g_key, value(i % 2)); }); });
     }},
    {"a destructor that sets the value again",
     [] { return withKey(setAgain, [] { joined(start([] { ::pthread_setspecific(g_key, value(1)); })); }); }},
    {"a destructor that sets another value",
     [] {
       must(::pthread_key_create(&g_other_key, sayArgument));
       withKey(setOther, [] {
         joined(start([] {
           static char name[] = "second";
           ::pthread_setspecific(g_key, name);
         }));
       });
       ::pthread_key_delete(g_other_key);
       return said();
     }},
    {"a destructor that waits",
     [] {
       withKey(waitAtTheEnd, [] {
         joined(start([] {
           thread_local pthread_t self;
           self = ::pthread_self();
           ::pthread_setspecific(g_key, &self);
         }));
       });
       return said();
     }},
    {"no destructor for a deleted key",
     [] {
       g_destroyed = 0;
       pthread_key_t key{};
       must(::pthread_key_create(&key, countDestroyed));
       joined(start([key] {
         ::pthread_setspecific(key, value(1));
         ::pthread_key_delete(key);
       }));
       return text({g_destroyed.load(), error(::pthread_setspecific(key, nullptr)), error(::pthread_key_delete(key))});
     }},
    {"a key made while threads run",
     [] {
       Semaphore ready, go;
       const std::vector<pthread_t> threads = startMany(5, [&](int) {
         ready.post();
         go.wait();
         return ::pthread_getspecific(g_key) == nullptr ? 1 : 0;
       });
       ready.wait(5);
       std::string seen;
       withKey(countDestroyed, [&] {
         for (int i = 0; i < 5; ++i) go.post();
         seen = text({joinMany(threads)});
       });
       return seen;
     }},
    {"keys after pthread_exit and cancel",
     [] {
       return withKey(countDestroyed, [] {
         joined(start([] {
           ::pthread_setspecific(g_key, value(1));
           ::pthread_exit(nullptr);
         }));
         const pthread_t thread = start([] {
           ::pthread_setspecific(g_key, value(1));
           ::pause();
         });
         ::pthread_cancel(thread);
         joined(thread);
       });
     }},
    {"100 keys",
     [] {
       std::vector<pthread_key_t> keys(100);
       g_destroyed = 0;
       for (pthread_key_t& key : keys) must(::pthread_key_create(&key, countDestroyed));
       const intptr_t sum = runMany(4, [&](int thread) {
         for (size_t i = 0; i < keys.size(); ++i) ::pthread_setspecific(keys[i], value(thread * 1000 + static_cast<int>(i)));
         ::sched_yield();
         intptr_t right = 0;
         for (size_t i = 0; i < keys.size(); ++i) {
           right += number(::pthread_getspecific(keys[i])) == thread * 1000 + static_cast<int>(i) ? 1 : 0;
         }
         return right;
       });
       for (const pthread_key_t key : keys) ::pthread_key_delete(key);
       return text({sum, g_destroyed.load()});  // one value is null
     }},
    {"as many keys as there are",
     [] {
       std::vector<pthread_key_t> keys;
       pthread_key_t key{};
       int error_number = 0;
       while ((error_number = ::pthread_key_create(&key, nullptr)) == 0) keys.push_back(key);
       const bool many = keys.size() >= 500;
       for (const pthread_key_t each : keys) ::pthread_key_delete(each);
       return text({error(error_number), many});
     }},
    {"keys of main at exit", [] { return part("keys at exit"); }},
    {"keys of main at pthread_exit", [] { return part("keys at pthread_exit"); }},
};

// ---- Once --------------------------------------------------------------------------------------------------------------------

std::atomic<int> g_inits;
Semaphore g_init_started;

void countInit() {
  pauseMs(2);
  ++g_inits;
}

const Case kOnce[] = {
    {"once in 20 threads",
     [] {
       static pthread_once_t once = PTHREAD_ONCE_INIT;
       once = PTHREAD_ONCE_INIT;
       g_inits = 0;
       const intptr_t done = runMany(20, [](int) {
         ::pthread_once(&once, countInit);
         return g_inits.load();
       });
       return text({done, g_inits.load()});
     }},
    {"once in once",
     [] {
       static pthread_once_t outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
       outer = inner = PTHREAD_ONCE_INIT;
       g_inits = 0;
       runMany(5, [](int) {
         return ::pthread_once(&outer, [] {
           ::pthread_once(&inner, countInit);
           ++g_inits;
         });
       });
       return text({g_inits.load()});
     }},
    {"a canceled once runs again",
     [] {
       static pthread_once_t once = PTHREAD_ONCE_INIT;
       once = PTHREAD_ONCE_INIT;
       g_inits = 0;
       const pthread_t thread = start([] {
         ::pthread_once(&once, [] {
           g_init_started.post();
           ::pause();
         });
       });
       g_init_started.wait();
       const pthread_t waits = start([] { return ::pthread_once(&once, countInit); });
       ::pthread_cancel(thread);
       const std::string first = joined(thread);
       return text({first, joined(waits), g_inits.load()});
     }},
};

// ---- Ends --------------------------------------------------------------------------------------------------------------------

[[noreturn]] __attribute__((noinline)) void exitDeep(int depth) {
  const Frame frame(depth == 0 ? "inner" : "outer");
  if (depth == 0) ::pthread_exit(value(11));
  exitDeep(depth - 1);
}

char g_one[] = "1", g_two[] = "2", g_three[] = "3";

const Case kEnds[] = {
    {"pthread_exit from nested frames",
     [] {
       const std::string returned = joined(start([] { exitDeep(2); }));
       return text({returned, said()});
     }},
    {"cleanup handlers at pthread_exit",
     [] {
       const std::string returned = joined(start([] {
         pthread_cleanup_push(sayArgument, g_one);
         pthread_cleanup_push(sayArgument, g_two);
         pthread_cleanup_push(sayArgument, g_three);
         pthread_cleanup_pop(0);
         ::pthread_exit(value(12));
         pthread_cleanup_pop(0);
         pthread_cleanup_pop(0);
       }));
       return text({returned, said()});
     }},
    {"cleanup handlers that are popped",
     [] {
       joined(start([] {
         pthread_cleanup_push(sayArgument, g_one);
         pthread_cleanup_push(sayArgument, g_two);
         say("body");
         pthread_cleanup_pop(1);
         pthread_cleanup_pop(0);
       }));
       return said();
     }},
    {"a cleanup handler waits",
     [] {
       const std::string returned = joined(start([] {
         pthread_cleanup_push(
             [](void* what) {
               pauseMs(2);
               sayArgument(what);
             },
             g_one);
         ::pthread_exit(value(13));
         pthread_cleanup_pop(0);
       }));
       return text({returned, said()});
     }},
    {"pthread_exit through a catch",
     [] {
       const std::string returned = joined(start([] {
         try {
           ::pthread_exit(value(14));
         } catch (...) {
           say("caught");
           throw;
         }
       }));
       return text({returned, said()});
     }},
    {"pthread_exit of 50 threads",
     [] {
       return text({runMany(50, [](int i) -> int {
         pauseMs(1);
         ::pthread_exit(value(i));
       })});
     }},
    {"main leaves by pthread_exit", [] { return part("main leaves"); }},
    {"main leaves and a thread exits", [] { return part("main leaves, a thread exits"); }},
    {"main leaves and is joined", [] { return part("main is joined"); }},
    {"main returns while threads run", [] { return part("main returns"); }},
    {"a thread exits", [] { return part("exit"); }},
    {"a thread exits quickly", [] { return part("quick_exit"); }},
    {"a thread exits at once", [] { return part("_exit"); }},
    {"a thread aborts", [] { return part("abort"); }},
    {"a thread throws", [] { return part("throw"); }},
    {"a thread executes", [] { return part("execute"); }},
    {"a thread faults", [] { return part("fault"); }},
    {"a signal ends the process", [] { return part("killed"); }},
};

// ---- Mutexes -----------------------------------------------------------------------------------------------------------------

/// 8 threads count under the lock, which they give away now and then while they hold it.
template <class Lock, class Unlock>
std::string counted(Lock lock, Unlock unlock) {
  int count = 0;
  runMany(8, [&](int) {
    for (int i = 0; i < 500; ++i) {
      lock();
      const int before = count;
      if (i % 16 == 0) ::sched_yield();
      count = before + 1;
      unlock();
    }
    return 0;
  });
  return text({count});
}

std::string counted(Mutex& mutex) {
  return counted([&] { mutex.lock(); }, [&] { mutex.unlock(); });
}

/// What `call` returns in another thread while this one holds the mutex.
template <class Call>
std::string whileHeld(Mutex& mutex, Call call) {
  mutex.lock();
  std::string seen = elsewhere([&] { return error(call()); });
  mutex.unlock();
  return seen;
}

/// What `call` returns in a thread that began to wait, perhaps, before this one unlocks.
template <class Call>
std::string untilUnlocked(Mutex& mutex, Call call) {
  mutex.lock();
  Semaphore started;
  const pthread_t thread = start([&] {
    started.post();
    const int locked = call();
    mutex.unlock();
    return locked;
  });
  started.wait();
  pauseMs(kShortMs);
  mutex.unlock();
  return joined(thread);
}

int lockUntil(Mutex& mutex, timespec time) { return ::pthread_mutex_timedlock(mutex.get(), &time); }
int lockUntil(Mutex& mutex, clockid_t clock, int ms) {
  const timespec time = timeIn(ms, clock);
  return ::pthread_mutex_clocklock(mutex.get(), clock, &time);
}

/// Has a thread end while it holds the mutex.
void leaveLocked(Mutex& mutex) {
  joined(start([&] { mutex.lock(); }));
}

/// A mutex, and more, in memory that a forked child shares.
template <class Shared>
class SharedMemory {
 public:
  SharedMemory()
      : m_shared(new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared()) {}
  ~SharedMemory() { ::munmap(m_shared, sizeof(Shared)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Shared* operator->() const { return m_shared; }

 private:
  Shared* m_shared;
};

struct SharedLock {
  SharedLock() {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    must(::pthread_mutex_init(&mutex, &attributes));
    ::pthread_mutexattr_destroy(&attributes);
    ::sem_init(&locked, 1, 0);
  }
  pthread_mutex_t mutex{};
  sem_t locked{};
  int count = 0;
};

const Case kMutexes[] = {
    {"a normal mutex counts",
     [] {
       Mutex mutex;
       return counted(mutex);
     }},
    {"a recursive mutex counts",
     [] {
       Mutex mutex(PTHREAD_MUTEX_RECURSIVE);
       return counted(mutex);
     }},
    {"an errorcheck mutex counts",
     [] {
       Mutex mutex(PTHREAD_MUTEX_ERRORCHECK);
       return counted(mutex);
     }},
    {"an adaptive mutex counts",
     [] {
       Mutex mutex(PTHREAD_MUTEX_ADAPTIVE_NP);
       return counted(mutex);
     }},
    {"a robust mutex counts",
     [] {
       Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
       return counted(mutex);
     }},
    {"a mutex that inherits priority counts",
     [] {
       Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
       return counted(mutex);
     }},
    {"a mutex of C counts",
     [] {
       static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
       return counted([] { ::pthread_mutex_lock(&mutex); }, [] { ::pthread_mutex_unlock(&mutex); });
     }},
    {"trylock of a held mutex",
     [] {
       Mutex mutex;
       const std::string held = whileHeld(mutex, [&] { return mutex.tryLock(); });
       return text({held, error(mutex.tryLock()), error(mutex.unlock())});
     }},
    {"a recursive mutex is held until the last unlock",
     [] {
       Mutex mutex(PTHREAD_MUTEX_RECURSIVE);
       std::string seen = text({mutex.lock(), mutex.lock(), mutex.tryLock()});
       const auto other = [&] {
         return elsewhere([&] {
           const int locked = mutex.tryLock();
           return text({error(locked), error(mutex.unlock())});
         });
       };
       for (int i = 0; i < 3; ++i) seen += text({"", other(), error(mutex.unlock())});
       return text({seen, other(), error(mutex.unlock())});
     }},
    {"an errorcheck mutex",
     [] {
       Mutex mutex(PTHREAD_MUTEX_ERRORCHECK);
       const int unheld = mutex.unlock();
       mutex.lock();
       const std::string foreign = elsewhere([&] { return error(mutex.unlock()); });
       return text({error(unheld), foreign, error(mutex.lock()), error(mutex.tryLock()), error(lockUntil(mutex, timeIn(kLongMs))),
                    error(mutex.unlock())});
     }},
    {"a timed lock expires",
     [] {
       Mutex mutex;
       return text({whileHeld(mutex, [&] { return lockUntil(mutex, timeIn(kShortMs)); }),
                    whileHeld(mutex, [&] { return lockUntil(mutex, timeIn(-1000)); }),
                    whileHeld(mutex, [&] { return lockUntil(mutex, nowhere()); }), error(lockUntil(mutex, timeIn(-1000))),
                    error(mutex.unlock())});
     }},
    {"a timed lock of one's own mutex",
     [] {
       Mutex mutex;
       mutex.lock();
       return text({error(lockUntil(mutex, timeIn(kShortMs))), error(mutex.unlock())});
     }},
    {"a timed lock gets the mutex",
     [] {
       Mutex mutex;
       return untilUnlocked(mutex, [&] { return lockUntil(mutex, timeIn(kLongMs)); });
     }},
    {"a lock waits for the mutex",
     [] {
       Mutex mutex;
       return untilUnlocked(mutex, [&] { return mutex.lock(); });
     }},
    {"a lock by another clock",
     [] {
       Mutex mutex;
       std::string seen;
       for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
         seen += whileHeld(mutex, [&] { return lockUntil(mutex, clock, kShortMs); }) + ' ';
         seen += untilUnlocked(mutex, [&] { return lockUntil(mutex, clock, kLongMs); }) + ' ';
       }
       return seen + whileHeld(mutex, [&] { return lockUntil(mutex, CLOCK_PROCESS_CPUTIME_ID, kLongMs); });
     }},
    {"a timed lock of a mutex that inherits priority",
     [] {
       Mutex mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
       return text({whileHeld(mutex, [&] { return lockUntil(mutex, timeIn(kShortMs)); }),
                    whileHeld(mutex, [&] { return mutex.tryLock(); }),
                    untilUnlocked(mutex, [&] { return lockUntil(mutex, timeIn(kLongMs)); }), error(mutex.unlock()),
                    error(mutex.lock()), error(mutex.lock()), error(mutex.unlock())});
     }},
    {"the owner of a robust mutex dies",
     [] {
       std::string seen;
       for (const int protocol : {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT}) {
         Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, protocol);
         leaveLocked(mutex);
         const int lock = mutex.lock(), consistent = ::pthread_mutex_consistent(mutex.get()), unlock = mutex.unlock();
         seen += text({error(lock), error(consistent), error(unlock), error(mutex.lock()), error(mutex.unlock())}) + ' ';
       }
       return seen;
     }},
    {"a robust mutex that nobody repairs",
     [] {
       Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
       leaveLocked(mutex);
       const int lock = mutex.tryLock(), unlock = mutex.unlock();
       return text({error(lock), error(unlock), error(mutex.lock()), error(mutex.tryLock())});
     }},
    {"a waiter gets the mutex of a dead owner",
     [] {
       Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
       Semaphore locked, go;
       const pthread_t owner = start([&] {
         mutex.lock();
         locked.post();
         go.wait();
         pauseMs(kShortMs);
       });
       locked.wait();
       const pthread_t waiter = start([&] {
         go.post();
         const int lock = mutex.lock();
         ::pthread_mutex_consistent(mutex.get());
         mutex.unlock();
         return lock;
       });
       joined(owner);
       return text({std::stoi(joined(waiter)) == EOWNERDEAD, error(mutex.lock()), error(mutex.unlock())});
     }},
    {"a timed lock of a dead owner's mutex",
     [] {
       Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
       leaveLocked(mutex);
       return text(
           {error(lockUntil(mutex, timeIn(kLongMs))), error(::pthread_mutex_consistent(mutex.get())), error(mutex.unlock())});
     }},
    {"destroy of a held mutex",
     [] {
       pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
       ::pthread_mutex_lock(&mutex);
       const int held = ::pthread_mutex_destroy(&mutex);
       ::pthread_mutex_unlock(&mutex);
       return text({error(held), error(::pthread_mutex_destroy(&mutex))});
     }},
    {"a mutex in 50 hands",
     [] {
       Mutex mutex;
       mutex.lock();
       int held = 0;
       const std::vector<pthread_t> threads = startMany(50, [&](int) {
         mutex.lock();
         ++held;
         return mutex.unlock();
       });
       const int before = held;
       mutex.unlock();
       return text({before, joinMany(threads), held});
     }},
    {"a mutex held over a sleep",
     [] {
       Mutex mutex;
       int inside = 0, most = 0;
       runMany(5, [&](int) {
         mutex.lock();
         most = std::max(most, ++inside);
         pauseMs(1);
         --inside;
         return mutex.unlock();
       });
       return text({most});
     }},
    {"what attributes of mutexes refuse",
     [] {
       pthread_mutexattr_t attributes;
       ::pthread_mutexattr_init(&attributes);
       int type = -1;
       ::pthread_mutexattr_gettype(&attributes, &type);
       const std::string seen =
           text({type == PTHREAD_MUTEX_DEFAULT, error(::pthread_mutexattr_settype(&attributes, 99)),
                 error(::pthread_mutexattr_setrobust(&attributes, 99)), error(::pthread_mutexattr_setprotocol(&attributes, 99)),
                 error(::pthread_mutexattr_setpshared(&attributes, 99))});
       ::pthread_mutexattr_destroy(&attributes);
       return seen;
     }},
    {"a mutex of two processes",
     [] {
       const SharedMemory<SharedLock> lock;
       const pid_t child = ::fork();
       for (int i = 0; i < 200; ++i) {
         ::pthread_mutex_lock(&lock->mutex);
         const int before = lock->count;
         if (i % 16 == 0) ::sched_yield();
         lock->count = before + 1;
         ::pthread_mutex_unlock(&lock->mutex);
       }
       if (child == 0) ::_exit(0);
       return text({reaped(child), lock->count});
     }},
    {"a mutex whose process dies",
     [] {
       const SharedMemory<SharedLock> lock;
       const pid_t child = ::fork();
       if (child == 0) {
         ::pthread_mutex_lock(&lock->mutex);
         ::sem_post(&lock->locked);
         pauseMs(kShortMs);
         ::_exit(3);
       }
       ::sem_wait(&lock->locked);
       const int locked = ::pthread_mutex_lock(&lock->mutex);
       return text({error(locked), error(::pthread_mutex_consistent(&lock->mutex)), error(::pthread_mutex_unlock(&lock->mutex)),
                    reaped(child)});
     }},
};

// ---- Conditions --------------------------------------------------------------------------------------------------------------

enum class Form { kWait, kTimed, kClock };

int waitOn(Condition& condition, Mutex& mutex, Form form, int ms, clockid_t clock = CLOCK_REALTIME) {
  const timespec time = timeIn(ms, clock);
  switch (form) {
    case Form::kWait: return ::pthread_cond_wait(condition.get(), mutex.get());
    case Form::kTimed: return ::pthread_cond_timedwait(condition.get(), mutex.get(), &time);
    case Form::kClock: return ::pthread_cond_clockwait(condition.get(), mutex.get(), clock, &time);
  }
  return -1;
}

/// Two threads take turns at a count.
std::string turns(Form form, clockid_t clock = CLOCK_REALTIME) {
  Mutex mutex;
  Condition condition(form == Form::kTimed ? clock : CLOCK_REALTIME);
  int count = 0, failed = 0;
  runMany(2, [&](int mine) {
    mutex.lock();
    for (int i = 0; i < 300; ++i) {
      while (count % 2 != mine) failed += waitOn(condition, mutex, form, kLongMs, clock) == 0 ? 0 : 1;
      ++count;
      condition.signal();
    }
    return mutex.unlock();
  });
  return text({count, failed});
}

/// A wait that nobody ends, after which the mutex must be held.
std::string expired(Form form, int ms, clockid_t clock = CLOCK_REALTIME) {
  Mutex mutex(PTHREAD_MUTEX_ERRORCHECK);
  Condition condition(form == Form::kTimed ? clock : CLOCK_REALTIME);
  mutex.lock();
  int waited = 0;
  while ((waited = waitOn(condition, mutex, form, ms, clock)) == 0) {
  }
  const std::string held = elsewhere([&] { return error(mutex.tryLock()); });
  return text({error(waited), held, error(mutex.unlock())});
}

const Case kConditions[] = {
    {"turns by a condition", [] { return turns(Form::kWait); }},
    {"turns by timed waits",
     [] {
       return text({turns(Form::kTimed), turns(Form::kTimed, CLOCK_MONOTONIC)});
     }},
    {"turns by waits with a clock",
     [] {
       return text({turns(Form::kClock), turns(Form::kClock, CLOCK_MONOTONIC)});
     }},
    {"a timed wait expires",
     [] {
       return text(
           {expired(Form::kTimed, kShortMs), expired(Form::kTimed, -1000), expired(Form::kTimed, kShortMs, CLOCK_MONOTONIC)});
     }},
    {"a wait with a clock expires",
     [] {
       return text({expired(Form::kClock, kShortMs), expired(Form::kClock, -1000, CLOCK_MONOTONIC),
                    expired(Form::kClock, kShortMs, CLOCK_MONOTONIC)});
     }},
    {"a broadcast wakes all",
     [] {
       Mutex mutex;
       Condition condition;
       Semaphore waiting;
       bool go = false;
       const std::vector<pthread_t> threads = startMany(20, [&](int) {
         mutex.lock();
         waiting.post();
         while (!go) condition.wait(mutex);
         mutex.unlock();
         return 1;
       });
       waiting.wait(20);
       mutex.lock();
       go = true;
       condition.broadcast();
       mutex.unlock();
       return text({joinMany(threads)});
     }},
    {"a signal for each waiter",
     [] {
       Mutex mutex;
       Condition condition;
       int tickets = 0;
       const std::vector<pthread_t> threads = startMany(10, [&](int) {
         mutex.lock();
         while (tickets == 0) condition.wait(mutex);
         --tickets;
         return mutex.unlock();
       });
       for (int i = 0; i < 10; ++i) {
         mutex.lock();
         ++tickets;
         mutex.unlock();
         condition.signal();
       }
       return text({joinMany(threads), tickets});
     }},
    {"a signal that nobody waits for",
     [] {
       Condition condition;
       condition.signal();
       condition.broadcast();
       Mutex mutex;
       mutex.lock();
       int waited = 0;
       while ((waited = waitOn(condition, mutex, Form::kTimed, kShortMs)) == 0) {
       }
       return text({error(waited), error(mutex.unlock())});
     }},
    {"what waits refuse",
     [] {
       Mutex mutex(PTHREAD_MUTEX_ERRORCHECK);
       Condition condition;
       const int unheld = waitOn(condition, mutex, Form::kTimed, kLongMs);
       mutex.lock();
       const timespec time = nowhere();
       return text({error(unheld), error(::pthread_cond_timedwait(condition.get(), mutex.get(), &time)),
                    error(waitOn(condition, mutex, Form::kClock, kLongMs, CLOCK_PROCESS_CPUTIME_ID)), error(mutex.unlock())});
     }},
    {"a wait with a recursive mutex",
     [] {
       Mutex mutex(PTHREAD_MUTEX_RECURSIVE);
       Condition condition;
       bool go = false;
       mutex.lock();
       const pthread_t thread = start([&] {
         mutex.lock();
         go = true;
         condition.signal();
         mutex.unlock();
       });
       while (!go) condition.wait(mutex);
       const int unlocked = mutex.unlock();
       return text({joined(thread), error(unlocked), error(mutex.unlock())});
     }},
    {"a wait with a mutex that inherits priority",
     [] {
       Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
       Condition condition;
       bool go = false;
       const pthread_t thread = start([&] {
         mutex.lock();
         while (!go) condition.wait(mutex);
         return mutex.unlock();
       });
       mutex.lock();
       go = true;
       condition.signal();
       mutex.unlock();
       return joined(thread);
     }},
    {"a wait ends with a dead owner",
     [] {
       Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
       Condition condition;
       bool go = false;
       mutex.lock();
       const pthread_t owner = start([&] {
         mutex.lock();
         go = true;
         condition.signal();
       });
       int waited = 0;
       while (!go) waited = waitOn(condition, mutex, Form::kWait, 0);
       const std::string seen = text({error(waited), error(::pthread_mutex_consistent(mutex.get())), error(mutex.unlock())});
       return text({joined(owner), seen});
     }},
    {"a condition is destroyed after a broadcast",
     [] {
       Mutex mutex;
       auto condition = std::make_unique<Condition>();
       Semaphore waiting;
       bool go = false;
       const std::vector<pthread_t> threads = startMany(5, [&, waits = condition.get()](int) {
         mutex.lock();
         waiting.post();
         while (!go) waits->wait(mutex);
         return mutex.unlock();
       });
       waiting.wait(5);
       mutex.lock();
       go = true;
       condition->broadcast();
       mutex.unlock();
       condition.reset();
       return text({joinMany(threads)});
     }},
    {"clocks of conditions",
     [] {
       pthread_condattr_t attributes;
       ::pthread_condattr_init(&attributes);
       clockid_t clock = -1;
       ::pthread_condattr_getclock(&attributes, &clock);
       const std::string seen =
           text({clock == CLOCK_REALTIME, error(::pthread_condattr_setclock(&attributes, CLOCK_PROCESS_CPUTIME_ID))});
       ::pthread_condattr_destroy(&attributes);
       return seen;
     }},
};

// ---- Locks for readers and writers, spin locks, barriers ---------------------------------------------------------------------

class ReadWriteLock {
 public:
  explicit ReadWriteLock(int kind = PTHREAD_RWLOCK_DEFAULT_NP) {
    pthread_rwlockattr_t attributes;
    ::pthread_rwlockattr_init(&attributes);
    must(::pthread_rwlockattr_setkind_np(&attributes, kind));
    must(::pthread_rwlock_init(&m_lock, &attributes));
    ::pthread_rwlockattr_destroy(&attributes);
  }
  ~ReadWriteLock() { ::pthread_rwlock_destroy(&m_lock); }
  ReadWriteLock(const ReadWriteLock&) = delete;
  ReadWriteLock& operator=(const ReadWriteLock&) = delete;
  int read() { return ::pthread_rwlock_rdlock(&m_lock); }
  int write() { return ::pthread_rwlock_wrlock(&m_lock); }
  int tryRead() { return ::pthread_rwlock_tryrdlock(&m_lock); }
  int tryWrite() { return ::pthread_rwlock_trywrlock(&m_lock); }
  int unlock() { return ::pthread_rwlock_unlock(&m_lock); }
  int writes() {
    const int locked = write();
    return locked + unlock();
  }
  int readUntil(timespec time) { return ::pthread_rwlock_timedrdlock(&m_lock, &time); }
  int writeUntil(timespec time) { return ::pthread_rwlock_timedwrlock(&m_lock, &time); }
  int readUntil(clockid_t clock, timespec time) { return ::pthread_rwlock_clockrdlock(&m_lock, clock, &time); }
  int writeUntil(clockid_t clock, timespec time) { return ::pthread_rwlock_clockwrlock(&m_lock, clock, &time); }

 private:
  pthread_rwlock_t m_lock{};
};

/// The results of all forms of both locks in another thread, with this time for those that have one.
std::string allForms(ReadWriteLock& lock, int ms) {
  return elsewhere([&] {
    const timespec real = timeIn(ms), monotonic = timeIn(ms, CLOCK_MONOTONIC);
    std::string seen;
    const auto add = [&](int locked) {
      seen += error(locked) + ' ';
      if (locked == 0) lock.unlock();
    };
    add(lock.tryRead());
    add(lock.readUntil(real));
    add(lock.readUntil(CLOCK_MONOTONIC, monotonic));
    add(lock.tryWrite());
    add(lock.writeUntil(real));
    add(lock.writeUntil(CLOCK_MONOTONIC, monotonic));
    return seen;
  });
}

const Case kReadWriteLocks[] = {
    {"readers are inside together",
     [] {
       ReadWriteLock lock;
       Barrier all(10);
       return text({runMany(10, [&](int) {
         const int locked = lock.read();
         all.wait();
         return locked + lock.unlock();
       })});
     }},
    {"locks under a writer",
     [] {
       ReadWriteLock lock;
       lock.write();
       return text({allForms(lock, kShortMs), error(lock.unlock())});
     }},
    {"locks under a reader",
     [] {
       ReadWriteLock lock;
       lock.read();
       return text({allForms(lock, kShortMs), error(lock.unlock())});
     }},
    {"locks under nobody",
     [] {
       ReadWriteLock lock;
       return allForms(lock, kLongMs);
     }},
    {"locks over past times",
     [] {
       ReadWriteLock lock;
       lock.write();
       return text({allForms(lock, -1000), elsewhere([&] { return error(lock.readUntil(nowhere())); }),
                    elsewhere([&] { return error(lock.writeUntil(nowhere())); }), error(lock.unlock())});
     }},
    {"a writer locks again",
     [] {
       ReadWriteLock lock;
       lock.write();
       return text(
           {error(lock.read()), error(lock.write()), error(lock.tryRead()), error(lock.tryWrite()), error(lock.unlock())});
     }},
    {"a reader locks again",
     [] {
       ReadWriteLock lock;
       return text({lock.read(), lock.read(), error(lock.unlock()), elsewhere([&] { return error(lock.tryWrite()); }),
                    error(lock.unlock()), error(lock.tryWrite()), error(lock.unlock())});
     }},
    {"writers count",
     [] {
       ReadWriteLock lock;
       return counted([&] { lock.write(); }, [&] { lock.unlock(); });
     }},
    {"writers count by timed locks",
     [] {
       ReadWriteLock lock;
       return counted([&] { lock.writeUntil(timeIn(kLongMs)); }, [&] { lock.unlock(); });
     }},
    {"readers see whole writes",
     [] {
       ReadWriteLock lock;
       int first = 0, second = 0;
       const intptr_t torn = runMany(8, [&](int i) {
         int wrong = 0;
         for (int round = 0; round < 200; ++round) {
           if (i < 2) {
             lock.write();
             ++first;
             if (round % 16 == 0) ::sched_yield();
             ++second;
           } else {
             lock.read();
             wrong += first == second ? 0 : 1;
           }
           lock.unlock();
         }
         return wrong;
       });
       return text({torn, first, second});
     }},
    {"a writer gives way to all readers",
     [] {
       ReadWriteLock lock;
       lock.write();
       Barrier all(6);
       const std::vector<pthread_t> threads = startMany(6, [&](int) {
         const int locked = lock.readUntil(timeIn(kLongMs));
         all.wait();
         return locked + lock.unlock();
       });
       lock.unlock();
       return text({joinMany(threads)});
     }},
    {"a reader gives way to a writer",
     [] {
       ReadWriteLock lock;
       lock.read();
       const pthread_t thread = start([&] { return lock.writes(); });
       pauseMs(kShortMs);
       lock.unlock();
       return joined(thread);
     }},
    {"a writer that is preferred",
     [] {
       ReadWriteLock lock(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
       lock.read();
       const pthread_t writer = start([&] { return lock.writes(); });
       int again = 0;
       while ((again = lock.tryRead()) == 0) {  // until the writer waits
         lock.unlock();
         pauseMs(1);
       }
       const int unlocked = lock.unlock();
       return text({error(again), error(unlocked), joined(writer)});
     }},
};

class SpinLock {
 public:
  SpinLock() { ::pthread_spin_init(&m_lock, PTHREAD_PROCESS_PRIVATE); }
  ~SpinLock() { ::pthread_spin_destroy(&m_lock); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;
  int lock() { return ::pthread_spin_lock(&m_lock); }
  int tryLock() { return ::pthread_spin_trylock(&m_lock); }
  int unlock() { return ::pthread_spin_unlock(&m_lock); }

 private:
  pthread_spinlock_t m_lock{};
};

const Case kSpinLocksAndBarriers[] = {
    {"a spin lock counts",
     [] {
       SpinLock lock;
       int count = 0;
       runMany(4, [&](int) {
         for (int i = 0; i < 1000; ++i) {
           lock.lock();
           ++count;
           lock.unlock();
         }
         return 0;
       });
       return text({count});
     }},
    {"trylock of a held spin lock",
     [] {
       SpinLock lock;
       lock.lock();
       const std::string held = elsewhere([&] { return error(lock.tryLock()); });
       lock.unlock();
       return text({held, error(lock.tryLock()), error(lock.unlock())});
     }},
    {"a spin lock held over a sleep",
     [] {
       SpinLock lock;
       return text({runMany(3, [&](int) {
         lock.lock();
         pauseMs(1);
         return lock.unlock();
       })});
     }},
    {"a barrier counts its rounds",
     [] {
       Barrier barrier(8);
       return text({runMany(8, [&](int) {
         int serial = 0;
         for (int i = 0; i < 100; ++i) serial += barrier.wait() == PTHREAD_BARRIER_SERIAL_THREAD ? 1 : 0;
         return serial;
       })});
     }},
    {"nobody passes a barrier before all arrive",
     [] {
       Barrier barrier(6);
       std::atomic<int> arrived{0};
       return text({runMany(6, [&](int i) {
         int early = 0;
         for (int round = 1; round <= 20; ++round) {
           if (i == round % 6) pauseMs(1);
           ++arrived;
           barrier.wait();
           if (arrived < 6 * round) ++early;
           barrier.wait();
         }
         return early;
       })});
     }},
    {"a barrier for one, and for none",
     [] {
       Barrier barrier(1);
       pthread_barrier_t none;
       return text({barrier.wait() == PTHREAD_BARRIER_SERIAL_THREAD, error(::pthread_barrier_init(&none, nullptr, 0))});
     }},
    {"a barrier is destroyed by the serial thread",
     [] {
       auto* const barrier = new Barrier(5);
       return text({runMany(5, [barrier](int) {
         if (barrier->wait() != PTHREAD_BARRIER_SERIAL_THREAD) return 0;
         delete barrier;
         return 1;
       })});
     }},
};

// ---- Semaphores --------------------------------------------------------------------------------------------------------------

int semaphoreValue(Semaphore& semaphore) {
  int count = -1;
  ::sem_getvalue(semaphore.get(), &count);
  return count;
}

int waitUntil(Semaphore& semaphore, timespec time) { return ::sem_timedwait(semaphore.get(), &time); }
int waitUntil(Semaphore& semaphore, clockid_t clock, timespec time) { return ::sem_clockwait(semaphore.get(), clock, &time); }

const Case kSemaphores[] = {
    {"a semaphore counts",
     [] {
       Semaphore semaphore(2);
       const int before = semaphoreValue(semaphore);
       std::string seen;
       for (int i = 0; i < 3; ++i) seen += result(::sem_trywait(semaphore.get())) + ' ';
       semaphore.post();
       return text({before, seen, semaphoreValue(semaphore), result(::sem_wait(semaphore.get()))});
     }},
    {"a semaphore waits for a post",
     [] {
       Semaphore semaphore;
       bool posted = false;
       const pthread_t thread = start([&] {
         pauseMs(kShortMs);
         posted = true;
         semaphore.post();
       });
       semaphore.wait();
       return text({posted, joined(thread)});
     }},
    {"50 wait for a semaphore",
     [] {
       Semaphore semaphore;
       const std::vector<pthread_t> threads = startMany(50, [&](int) {
         semaphore.wait();
         return 1;
       });
       for (int i = 0; i < 50; ++i) semaphore.post();
       return text({joinMany(threads), semaphoreValue(semaphore)});
     }},
    {"a timed wait for a semaphore expires",
     [] {
       Semaphore semaphore;
       return text({result(waitUntil(semaphore, timeIn(kShortMs))), result(waitUntil(semaphore, timeIn(-1000))),
                    result(waitUntil(semaphore, nowhere())),
                    result(waitUntil(semaphore, CLOCK_MONOTONIC, timeIn(kShortMs, CLOCK_MONOTONIC))),
                    result(waitUntil(semaphore, CLOCK_PROCESS_CPUTIME_ID, timeIn(kLongMs)))});
     }},
    {"a timed wait gets the semaphore",
     [] {
       Semaphore semaphore(1);
       const std::string past = result(waitUntil(semaphore, timeIn(-1000)));
       const pthread_t thread = start([&] {
         semaphore.post();
         pauseMs(kShortMs);
         semaphore.post();
       });
       const std::string first = result(waitUntil(semaphore, timeIn(kLongMs)));
       const std::string second = result(waitUntil(semaphore, CLOCK_MONOTONIC, timeIn(kLongMs, CLOCK_MONOTONIC)));
       return text({past, first, second, joined(thread)});
     }},
    {"what semaphores refuse",
     [] {
       sem_t most, more;
       ::sem_init(&most, 0, SEM_VALUE_MAX);
       const std::string seen = text({result(::sem_post(&most)), result(::sem_init(&more, 0, SEM_VALUE_MAX + 1U))});
       ::sem_destroy(&most);
       return seen;
     }},
    {"semaphores with names",
     [] {
       const std::string name = "/threads_program." + std::to_string(::getpid());
       sem_t* const made = ::sem_open(name.c_str(), O_CREAT | O_EXCL, 0600, 0);
       if (made == SEM_FAILED) return error(errno);
       const std::string again = ::sem_open(name.c_str(), O_CREAT | O_EXCL, 0600, 0) == SEM_FAILED ? error(errno) : "made";
       const pthread_t thread = start([&] {
         sem_t* const opened = ::sem_open(name.c_str(), 0);
         ::sem_post(opened);
         return opened == made ? ::sem_close(opened) : -1;
       });
       const std::string waited = result(::sem_wait(made)), returned = joined(thread);
       ::sem_close(made);
       ::sem_unlink(name.c_str());
       return text({again, waited, returned, ::sem_open(name.c_str(), 0) == SEM_FAILED ? error(errno) : "opened"});
     }},
    {"a semaphore of two processes",
     [] {
       const SharedMemory<SharedLock> lock;
       const pid_t child = ::fork();
       if (child == 0) {
         for (int i = 0; i < 3; ++i) {
           pauseMs(1);
           ::sem_post(&lock->locked);
         }
         ::_exit(4);
       }
       std::string seen;
       joined(start([&] {
         for (int i = 0; i < 3; ++i) seen += result(::sem_wait(&lock->locked)) + ' ';
       }));
       return seen + reaped(child);
     }},
};

// ---- C's threads -------------------------------------------------------------------------------------------------------------

const char* outcome(int thrd) {
  switch (thrd) {
    case thrd_success: return "success";
    case thrd_busy: return "busy";
    case thrd_error: return "error";
    case thrd_nomem: return "nomem";
    case thrd_timedout: return "timedout";
    default: return "?";
  }
}

mtx_t g_mtx;
cnd_t g_cnd;
tss_t g_tss;
std::atomic<int> g_state;

std::string joinedC(thrd_t thread) {
  int returned = -1;
  const int join = ::thrd_join(thread, &returned);
  return text({outcome(join), returned});
}

/// Runs `body` with g_mtx and g_cnd made, and g_state null.
template <class Run>
std::string withMtx(int type, Run body) {
  g_state = 0;
  const int made = ::mtx_init(&g_mtx, type);
  ::cnd_init(&g_cnd);
  std::string seen = text({outcome(made), body()});
  ::cnd_destroy(&g_cnd);
  ::mtx_destroy(&g_mtx);
  return seen;
}

std::string runC(thrd_start_t run, void* argument = nullptr) {
  thrd_t thread{};
  const int created = ::thrd_create(&thread, run, argument);
  return text({outcome(created), joinedC(thread)});
}

const Case kCThreads[] = {
    {"thrd_create and thrd_join", [] { return runC([](void* argument) { return 1 + *static_cast<int*>(argument); }, &t_seven); }},
    {"thrd_exit",
     [] {
       return runC([](void*) -> int {
         pauseMs(1);
         ::thrd_exit(-5);
       });
     }},
    {"thrd_current and thrd_equal",
     [] {
       static thrd_t main;
       main = ::thrd_current();
       return text({runC([](void*) { return ::thrd_equal(main, ::thrd_current()); }), ::thrd_equal(main, ::thrd_current()) != 0});
     }},
    {"thrd_detach",
     [] {
       static Semaphore over;
       thrd_t thread{};
       const int created = ::thrd_create(
           &thread,
           [](void*) {
             over.post();
             return 0;
           },
           nullptr);
       const int detached = ::thrd_detach(thread);
       over.wait();
       return text({outcome(created), outcome(detached)});
     }},
    {"thrd_sleep and thrd_yield",
     [] {
       return runC([](void*) {
         ::thrd_yield();
         const timespec time{0, 1'000'000}, none = nowhere();
         return ::thrd_sleep(&time, nullptr) + 10 * ::thrd_sleep(&none, nullptr);
       });
     }},
    {"mtx_lock counts",
     [] { return withMtx(mtx_plain, [] { return counted([] { ::mtx_lock(&g_mtx); }, [] { ::mtx_unlock(&g_mtx); }); }); }},
    {"a recursive mtx",
     [] {
       return withMtx(mtx_plain | mtx_recursive, [] {
         const int first = ::mtx_lock(&g_mtx), second = ::mtx_lock(&g_mtx), unlocked = ::mtx_unlock(&g_mtx);
         const std::string other = elsewhere([] { return outcome(::mtx_trylock(&g_mtx)); });
         return text({outcome(first), outcome(second), outcome(unlocked), other, outcome(::mtx_unlock(&g_mtx))});
       });
     }},
    {"a timed mtx",
     [] {
       return withMtx(mtx_timed, [] {
         ::mtx_lock(&g_mtx);
         const std::string held = elsewhere([] {
           const timespec soon = timeIn(kShortMs), past = timeIn(-1000);
           return text({outcome(::mtx_timedlock(&g_mtx, &soon)), outcome(::mtx_timedlock(&g_mtx, &past))});
         });
         const pthread_t thread = start([] {
           const timespec late = timeIn(kLongMs);
           const int locked = ::mtx_timedlock(&g_mtx, &late);
           return locked + ::mtx_unlock(&g_mtx);
         });
         pauseMs(kShortMs);
         ::mtx_unlock(&g_mtx);
         return text({held, joined(thread)});
       });
     }},
    {"cnd_signal",
     [] {
       return withMtx(mtx_plain, [] {
         return text({runMany(2,
                              [](int mine) {
                                ::mtx_lock(&g_mtx);
                                for (int i = 0; i < 100; ++i) {
                                  while (g_state % 2 != mine) ::cnd_wait(&g_cnd, &g_mtx);
                                  ++g_state;
                                  ::cnd_signal(&g_cnd);
                                }
                                return ::mtx_unlock(&g_mtx);
                              }),
                      g_state.load()});
       });
     }},
    {"cnd_broadcast",
     [] {
       return withMtx(mtx_plain, [] {
         const std::vector<pthread_t> threads = startMany(10, [](int) {
           ::mtx_lock(&g_mtx);
           while (g_state == 0) ::cnd_wait(&g_cnd, &g_mtx);
           return ::mtx_unlock(&g_mtx);
         });
         ::mtx_lock(&g_mtx);
         g_state = 1;
         const int woken = ::cnd_broadcast(&g_cnd);
         ::mtx_unlock(&g_mtx);
         return text({outcome(woken), joinMany(threads)});
       });
     }},
    {"cnd_timedwait",
     [] {
       return withMtx(mtx_plain, [] {
         const timespec soon = timeIn(kShortMs), late = timeIn(kLongMs);
         ::mtx_lock(&g_mtx);
         int expires = 0, waited = 0;
         while ((expires = ::cnd_timedwait(&g_cnd, &g_mtx, &soon)) == thrd_success) {
         }
         const pthread_t thread = start([] {
           ::mtx_lock(&g_mtx);
           g_state = 1;
           ::cnd_signal(&g_cnd);
           ::mtx_unlock(&g_mtx);
         });
         while (g_state == 0) waited = ::cnd_timedwait(&g_cnd, &g_mtx, &late);
         ::mtx_unlock(&g_mtx);
         return text({outcome(expires), outcome(waited), joined(thread)});
       });
     }},
    {"tss",
     [] {
       g_destroyed = 0;
       const int created = ::tss_create(&g_tss, [](void* kept) {
         ++g_destroyed;
         ::tss_set(g_tss, kept);
       });
       const std::string returned = runC([](void*) {
         const bool null = ::tss_get(g_tss) == nullptr;
         ::tss_set(g_tss, value(5));
         ::thrd_yield();
         return static_cast<int>(number(::tss_get(g_tss))) + (null ? 0 : 100);
       });
       ::tss_delete(g_tss);
       return text({outcome(created), returned, g_destroyed == TSS_DTOR_ITERATIONS});
     }},
    {"call_once of C",
     [] {
       static once_flag once = ONCE_FLAG_INIT;
       once = ONCE_FLAG_INIT;
       g_inits = 0;
       runMany(10, [](int) {
         ::call_once(&once, countInit);
         return 0;
       });
       return text({g_inits.load()});
     }},
};

// ---- C++'s threads -----------------------------------------------------------------------------------------------------------

constexpr auto kLong = 30s;
constexpr auto kShort = 3ms;

const char* outcome(std::future_status status) {
  return status == std::future_status::ready ? "ready" : status == std::future_status::timeout ? "timeout" : "deferred";
}
const char* outcome(std::cv_status status) { return status == std::cv_status::timeout ? "timeout" : "no timeout"; }

/// The message of what `call` throws.
template <class Call>
std::string thrown(Call call) {
  try {
    call();
  } catch (const std::future_error& failure) {
    return failure.code().message();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "nothing";
}

/// The results of the timed forms of a lock in another thread, with this time.
template <class Lock>
std::string timedForms(Lock& lock, std::chrono::milliseconds time) {
  std::string seen;
  const auto add = [&](bool locked) {
    seen += text({locked, ""});
    if (locked) lock.unlock();
  };
  std::thread([&] {
    add(lock.try_lock_for(time));
    add(lock.try_lock_until(std::chrono::steady_clock::now() + time));
    add(lock.try_lock_until(std::chrono::system_clock::now() + time));
  }).join();
  return seen;
}

/// The same while this thread holds the lock, and then while nobody does.
template <class Lock>
std::string timedForms() {
  Lock lock;
  lock.lock();
  std::string held = timedForms(lock, kShort);
  lock.unlock();
  return held + timedForms(lock, kLong);
}

/// A static that is made by the first thread that comes by.
int madeOnce() {
  static const int made = [] {
    pauseMs(2);
    return ++g_inits;
  }();
  return made;
}

const Case kCppThreads[] = {
    {"std::thread",
     [] {
       int seen = 0;
       std::thread thread([&](int argument) { seen = argument; }, 5);
       const bool before = thread.joinable();
       std::thread moved = std::move(thread);
       moved.join();
       return text({seen, before, thread.joinable(), moved.joinable(), std::thread::hardware_concurrency() > 0});
     }},
    {"ids of std::thread",
     [] {
       std::thread::id seen;
       std::thread thread([&] { seen = std::this_thread::get_id(); });
       const std::thread::id id = thread.get_id();
       thread.join();
       return text({seen == id, id == std::this_thread::get_id(), thread.get_id() == std::thread::id()});
     }},
    {"std::thread detached",
     [] {
       static Semaphore over;
       std::thread([] { over.post(); }).detach();
       over.wait();
       return text({"over"});
     }},
    {"std::thread joins itself",
     [] {
       Semaphore go;
       std::thread thread;
       std::string seen;
       thread = std::thread([&] {
         go.wait();
         seen = thrown([&] { thread.join(); });
       });
       go.post();
       thread.join();
       return seen;
     }},
    {"std::jthread stops at its end",
     [] {
       bool stopped = false;
       {
         const std::jthread thread([&](const std::stop_token& stop) {
           while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
           stopped = true;
         });
       }
       return text({stopped});
     }},
    {"a callback of a stop",
     [] {
       std::stop_source source;
       std::thread::id called;
       const std::stop_callback callback(source.get_token(), [&] { called = std::this_thread::get_id(); });
       bool first = false, same = false;
       std::thread([&] {
         first = source.request_stop();
         same = called == std::this_thread::get_id();
       }).join();
       return text({first, same, source.request_stop()});
     }},
    {"condition_variable_any with a stop",
     [] {
       std::mutex mutex;
       std::condition_variable_any condition;
       bool satisfied = true;
       {
         Semaphore waiting;
         std::jthread thread([&](const std::stop_token& stop) {
           std::unique_lock<std::mutex> lock(mutex);
           waiting.post();
           satisfied = condition.wait(lock, stop, [] { return false; });
         });
         waiting.wait();
       }
       return text({satisfied});
     }},
    {"condition_variable_any with a shared_mutex",
     [] {
       std::shared_mutex mutex;
       std::condition_variable_any condition;
       bool go = false;
       std::thread thread([&] {
         const std::lock_guard<std::shared_mutex> lock(mutex);
         go = true;
         condition.notify_all();
       });
       {
         std::shared_lock<std::shared_mutex> lock(mutex);
         condition.wait(lock, [&] { return go; });
       }
       thread.join();
       return text({go});
     }},
    {"condition_variable expires",
     [] {
       std::mutex mutex;
       std::condition_variable condition;
       std::unique_lock<std::mutex> lock(mutex);
       const auto never = [] { return false; };
       const auto past = std::chrono::steady_clock::now() - 1s;
       const bool waited_for = condition.wait_for(lock, kShort, never);
       const bool steady = condition.wait_until(lock, std::chrono::steady_clock::now() + kShort, never);
       const bool system = condition.wait_until(lock, std::chrono::system_clock::now() + kShort, never);
       return text({waited_for, steady, system, outcome(condition.wait_until(lock, past)), lock.owns_lock()});
     }},
    {"condition_variable wakes",
     [] {
       std::mutex mutex;
       std::condition_variable condition;
       int turn = 0;
       const auto other = [&](int mine) {
         int failed = 0;
         std::unique_lock<std::mutex> lock(mutex);
         for (int i = 0; i < 100; ++i) {
           if (!condition.wait_for(lock, kLong, [&] { return turn % 2 == mine; })) ++failed;
           ++turn;
           condition.notify_all();
         }
         return failed;
       };
       const intptr_t failed = runMany(2, other);
       return text({failed, turn});
     }},
    {"notify_all_at_thread_exit",
     [] {
       std::mutex mutex;
       std::condition_variable condition;
       bool over = false;
       std::unique_lock<std::mutex> lock(mutex);
       std::thread thread([&] {
         std::unique_lock<std::mutex> mine(mutex);
         over = true;
         std::notify_all_at_thread_exit(condition, std::move(mine));
         keptFirst().name = "variable";
       });
       condition.wait(lock, [&] { return over; });
       lock.unlock();
       thread.join();
       return text({over, said()});
     }},
    {"a promise",
     [] {
       std::promise<int> promise;
       std::future<int> future = promise.get_future();
       std::thread thread([&] { promise.set_value(3); });
       const int got = future.get();
       thread.join();
       return text({got, future.valid()});
     }},
    {"an exception through a promise",
     [] {
       std::promise<int> promise;
       std::future<int> future = promise.get_future();
       std::thread thread([&] {
         try {
           throw std::runtime_error("thrown there");
         } catch (...) {
           promise.set_exception(std::current_exception());
         }
       });
       const std::string seen = thrown([&] { future.get(); });
       thread.join();
       return seen;
     }},
    {"a broken promise",
     [] {
       auto promise = std::make_unique<std::promise<int>>();
       std::future<int> future = promise->get_future();
       std::thread thread([&] { promise.reset(); });
       const std::string seen = thrown([&] { future.get(); });
       thread.join();
       return seen;
     }},
    {"a future expires",
     [] {
       std::promise<void> promise;
       std::future<void> future = promise.get_future();
       const char* const before = outcome(future.wait_for(kShort));
       std::thread thread([&] { promise.set_value_at_thread_exit(); });
       const char* const after = outcome(future.wait_for(kLong));
       thread.join();
       return text({before, after});
     }},
    {"a shared future",
     [] {
       std::promise<int> promise;
       const std::shared_future<int> future = promise.get_future().share();
       const std::vector<pthread_t> threads = startMany(10, [future](int) { return future.get(); });
       promise.set_value(2);
       return text({joinMany(threads)});
     }},
    {"std::async",
     [] {
       const std::thread::id main = std::this_thread::get_id();
       const auto same = [main] { return std::this_thread::get_id() == main; };
       std::future<bool> async = std::async(std::launch::async, same), deferred = std::async(std::launch::deferred, same);
       return text({outcome(deferred.wait_for(0s)), async.get(), deferred.get()});
     }},
    {"30 of std::async",
     [] {
       std::vector<std::future<int>> futures;
       for (int i = 0; i < 30; ++i) {
         futures.push_back(std::async(std::launch::async, [i] {
           std::this_thread::sleep_for(1ms);
           return i;
         }));
       }
       return text(
           {std::accumulate(futures.begin(), futures.end(), 0, [](int sum, auto& future) { return sum + future.get(); })});
     }},
    {"a packaged_task",
     [] {
       std::packaged_task<int(int)> task([](int argument) { return argument + 1; });
       std::future<int> future = task.get_future();
       std::thread thread(std::move(task), 6);
       const int got = future.get();
       thread.join();
       return text({got});
     }},
    {"a latch",
     [] {
       std::latch latch(5);
       std::atomic<int> arrived{0};
       return text({runMany(5,
                            [&](int) {
                              ++arrived;
                              latch.arrive_and_wait();
                              return arrived == 5 ? 0 : 1;
                            }),
                    latch.try_wait()});
     }},
    {"std::barrier",
     [] {
       std::atomic<int> phases{0};
       std::barrier barrier(4, [&]() noexcept { ++phases; });
       runMany(4, [&](int i) {
         for (int phase = 0; phase < 20; ++phase) barrier.arrive_and_wait();
         if (i == 0) barrier.arrive_and_drop();
         if (i != 0) barrier.arrive_and_wait();
         return 0;
       });
       return text({phases.load()});
     }},
    {"std::counting_semaphore",
     [] {
       std::counting_semaphore<10> semaphore(0);
       const bool expired = semaphore.try_acquire_for(kShort);
       const std::vector<pthread_t> threads = startMany(5, [&](int i) {
         if (i % 2 == 0) semaphore.acquire();
         return i % 2 == 0 || semaphore.try_acquire_for(kLong) ? 0 : 1;
       });
       pauseMs(1);
       semaphore.release(2);
       semaphore.release(3);
       return text({expired, joinMany(threads), semaphore.try_acquire()});
     }},
    {"std::binary_semaphore ping-pong",
     [] {
       std::binary_semaphore ping(1), pong(0);
       int count = 0;
       runMany(2, [&](int i) {
         for (int round = 0; round < 200; ++round) {
           (i == 0 ? ping : pong).acquire();
           ++count;
           (i == 0 ? pong : ping).release();
         }
         return 0;
       });
       return text({count});
     }},
    {"atomic wait and notify_one",
     [] {
       std::atomic<int> turn{0};
       return text({runMany(2,
                            [&](int mine) {
                              for (int i = 0; i < 200; ++i) {
                                for (int seen = turn; seen % 2 != mine; seen = turn) turn.wait(seen);
                                ++turn;
                                turn.notify_one();
                              }
                              return 0;
                            }),
                    turn.load()});
     }},
    {"atomic wait and notify_all",
     [] {
       std::atomic_flag go;
       std::atomic<uint8_t> byte{0};
       const std::vector<pthread_t> threads = startMany(10, [&](int) {
         go.wait(false);
         byte.wait(0);
         return 1;
       });
       pauseMs(1);
       go.test_and_set();
       go.notify_all();
       pauseMs(1);
       byte = 1;
       byte.notify_all();
       return text({joinMany(threads)});
     }},
    {"call_once after an exception",
     [] {
       std::once_flag once;
       std::atomic<int> calls{0}, caught{0};
       runMany(5, [&](int) {
         try {
           std::call_once(once, [&] {
             pauseMs(1);
             if (++calls < 3) throw std::runtime_error("not yet");
           });
         } catch (const std::runtime_error&) {
           ++caught;
         }
         return 0;
       });
       return text({calls.load(), caught.load()});
     }},
    {"a static of a function",
     [] {
       g_inits = 0;
       return text({runMany(10, [](int) { return madeOnce(); })});
     }},
    {"std::timed_mutex", [] { return timedForms<std::timed_mutex>(); }},
    {"std::recursive_timed_mutex", [] { return timedForms<std::recursive_timed_mutex>(); }},
    {"std::shared_timed_mutex",
     [] {
       std::shared_timed_mutex mutex;
       std::string seen = timedForms<std::shared_timed_mutex>();
       mutex.lock_shared();
       std::thread([&] {
         seen += text({mutex.try_lock_shared_for(kLong), mutex.try_lock_for(kShort), mutex.try_lock()});
         mutex.unlock_shared();
       }).join();
       mutex.unlock_shared();
       mutex.lock();
       std::thread([&] {
         seen += text({"", mutex.try_lock_shared(), mutex.try_lock_shared_until(std::chrono::steady_clock::now() + kShort)});
       }).join();
       mutex.unlock();
       return seen;
     }},
    {"std::shared_mutex",
     [] {
       std::shared_mutex mutex;
       int written = 0;
       const intptr_t wrong = runMany(6, [&](int i) {
         int backwards = 0;
         for (int last = 0, round = 0; round < 100; ++round) {
           if (i < 2) {
             const std::lock_guard<std::shared_mutex> lock(mutex);
             ++written;
           } else {
             const std::shared_lock<std::shared_mutex> lock(mutex);
             backwards += written < last ? 1 : 0;
             last = written;
           }
           if (round % 16 == 0) std::this_thread::yield();
         }
         return backwards;
       });
       return text({wrong, written});
     }},
    {"scoped_lock in both orders",
     [] {
       std::mutex first, second;
       int count = 0;
       runMany(4, [&](int i) {
         for (int round = 0; round < 200; ++round) {
           const std::scoped_lock lock(i % 2 == 0 ? first : second, i % 2 == 0 ? second : first);
           if (round % 16 == 0) std::this_thread::yield();
           ++count;
         }
         return 0;
       });
       return text({count});
     }},
    {"exceptions in flight in many threads",
     [] {
       return text({runMany(10, [](int i) {
         for (int round = 0; round < 20; ++round) {
           try {
             try {
               throw i;
             } catch (int) {
               std::this_thread::yield();
               if (round == 10) std::this_thread::sleep_for(1ms);
               throw;
             }
           } catch (int caught) {
             if (caught != i || std::uncaught_exceptions() != 0) return 1;
           }
         }
         return std::current_exception() == nullptr ? 0 : 1;
       })});
     }},
    {"destructors wait while an exception unwinds",
     [] {
       struct Yields {
         ~Yields() {
           std::this_thread::sleep_for(1ms);
           *uncaught = std::uncaught_exceptions();
         }
         int* uncaught;
       };
       return text({runMany(10, [](int i) {
         int uncaught = -1;
         try {
           const Yields yields{&uncaught};
           if (i % 2 == 0) throw std::runtime_error("thrown");
         } catch (const std::runtime_error&) {
         }
         return uncaught == (i % 2 == 0 ? 1 : 0) ? 0 : 1;
       })});
     }},
};

// ---- Programs that the books have --------------------------------------------------------------------------------------------

/// A queue of fixed length.
class Queue {
 public:
  void put(int item) {
    m_mutex.lock();
    while (m_items.size() == 4) m_room.wait(m_mutex);
    m_items.push_back(item);
    m_some.signal();
    m_mutex.unlock();
  }
  int get() {
    m_mutex.lock();
    while (m_items.empty()) m_some.wait(m_mutex);
    const int item = m_items.front();
    m_items.pop_front();
    m_room.signal();
    m_mutex.unlock();
    return item;
  }

 private:
  Mutex m_mutex;
  Condition m_some, m_room;
  std::deque<int> m_items;
};

void sortInThreads(std::vector<int>& numbers, size_t first, size_t last, int depth) {
  if (depth == 0) return std::sort(numbers.begin() + static_cast<long>(first), numbers.begin() + static_cast<long>(last));
  const size_t middle = (first + last) / 2;
  const pthread_t left = start([&] { sortInThreads(numbers, first, middle, depth - 1); });
  sortInThreads(numbers, middle, last, depth - 1);
  joined(left);
  const auto begin = numbers.begin();
  std::inplace_merge(begin + static_cast<long>(first), begin + static_cast<long>(middle), begin + static_cast<long>(last));
}

const Case kPrograms[] = {
    {"producers and consumers",
     [] {
       Queue queue;
       const std::vector<pthread_t> consumers = startMany(4, [&](int) {
         intptr_t sum = 0;
         for (int item; (item = queue.get()) >= 0;) sum += item;
         return sum;
       });
       runMany(4, [&](int) {
         for (int i = 1; i <= 200; ++i) queue.put(i);
         return 0;
       });
       for (int i = 0; i < 4; ++i) queue.put(-1);
       return text({joinMany(consumers)});
     }},
    {"a pipeline",
     [] {
       std::array<Queue, 6> queues;
       const std::vector<pthread_t> stages = startMany(5, [&](int i) {
         for (int item; (item = queues[static_cast<size_t>(i)].get()) >= 0;) queues[static_cast<size_t>(i) + 1].put(item + 1);
         queues[static_cast<size_t>(i) + 1].put(-1);
         return 0;
       });
       const pthread_t source = start([&] {
         for (int i = 0; i < 100; ++i) queues.front().put(i);
         queues.front().put(-1);
       });
       intptr_t sum = 0;
       for (int item; (item = queues.back().get()) >= 0;) sum += item;
       return text({sum, joinMany(stages), joined(source)});
     }},
    {"philosophers",
     [] {
       std::array<Mutex, 5> forks;
       std::array<int, 5> meals{};
       runMany(5, [&](int i) {
         Mutex& first = forks[static_cast<size_t>(std::min(i, (i + 1) % 5))];
         Mutex& second = forks[static_cast<size_t>(std::max(i, (i + 1) % 5))];
         for (int meal = 0; meal < 200; ++meal) {
           first.lock();
           if (meal % 16 == 0) ::sched_yield();
           second.lock();
           ++meals[static_cast<size_t>(i)];
           second.unlock();
           first.unlock();
         }
         return 0;
       });
       return text({std::accumulate(meals.begin(), meals.end(), 0)});
     }},
    {"a token in a ring",
     [] {
       std::array<Semaphore, 20> ring;
       int steps = 0;
       const std::vector<pthread_t> threads = startMany(20, [&](int i) {
         for (int round = 0; round < 50; ++round) {
           ring[static_cast<size_t>(i)].wait();
           steps = steps % 20 == i ? steps + 1 : -1'000'000;
           ring[static_cast<size_t>(i + 1) % 20].post();
         }
         return 0;
       });
       ring[0].post();
       joinMany(threads);
       return text({steps});
     }},
    {"a sort in 16 threads",
     [] {
       std::vector<int> numbers(20'000);
       uint32_t state = 1;
       for (int& each : numbers) each = static_cast<int>((state = state * 1'664'525 + 1'013'904'223) >> 8);
       sortInThreads(numbers, 0, numbers.size(), 4);
       return text({std::is_sorted(numbers.begin(), numbers.end())});
     }},
    {"a sum in 8 threads",
     [] {
       std::vector<int> numbers(80'000);
       std::iota(numbers.begin(), numbers.end(), 0);
       return text({runMany(8, [&](int i) {
         const auto first = numbers.begin() + i * 10'000L;
         return std::accumulate(first, first + 10'000L, intptr_t{0});
       })});
     }},
    {"memory from one thread to another",
     [] {
       std::array<std::vector<std::unique_ptr<std::string>>, 8> kept;
       Barrier all(8);
       return text({runMany(8, [&](int i) {
         auto& mine = kept[static_cast<size_t>(i)];
         for (int n = 0; n < 200; ++n) mine.push_back(std::make_unique<std::string>(static_cast<size_t>(n * 7 % 300), 'a'));
         all.wait();
         auto& next = kept[static_cast<size_t>(i + 1) % 8];
         const size_t count = next.size();
         next.clear();
         return count;
       })});
     }},
    {"50 sleeps at once",
     [] {
       const auto before = std::chrono::steady_clock::now();
       runMany(50, [](int) { return ::usleep(400'000); });
       return text({std::chrono::steady_clock::now() - before < 15s});
     }},
};

// ---- Other joins, names ------------------------------------------------------------------------------------------------------

int joinUntil(pthread_t thread, void** returned, timespec time) { return ::pthread_timedjoin_np(thread, returned, &time); }

/// A thread's name, as the thread itself or another asks for it.
std::string nameOf(pthread_t thread) {
  char name[16] = "";
  const int got = ::pthread_getname_np(thread, name, sizeof name);
  return got == 0 ? name : error(got);
}

const Case kJoinsAndNames[] = {
    {"tryjoin",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] {
         go.wait();
         return 5;
       });
       void* returned = nullptr;
       const int busy = ::pthread_tryjoin_np(thread, &returned);
       go.post();
       int ready = 0;
       while ((ready = ::pthread_tryjoin_np(thread, &returned)) == EBUSY) pauseMs(1);
       return text({error(busy), error(ready), number(returned)});
     }},
    {"timedjoin",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] {
         go.wait();
         return 6;
       });
       void* returned = nullptr;
       const int soon = joinUntil(thread, &returned, timeIn(kShortMs)), past = joinUntil(thread, &returned, timeIn(-1000));
       go.post();
       const int ready = joinUntil(thread, &returned, timeIn(kLongMs));
       return text({error(soon), error(past), error(ready), number(returned)});
     }},
    {"clockjoin",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] {
         go.wait();
         return 7;
       });
       void* returned = nullptr;
       const timespec soon = timeIn(kShortMs, CLOCK_MONOTONIC), late = timeIn(kLongMs, CLOCK_MONOTONIC);
       const int expires = ::pthread_clockjoin_np(thread, &returned, CLOCK_MONOTONIC, &soon);
       const int refused = ::pthread_clockjoin_np(thread, &returned, CLOCK_PROCESS_CPUTIME_ID, &late);
       go.post();
       const int ready = ::pthread_clockjoin_np(thread, &returned, CLOCK_MONOTONIC, &late);
       return text({error(expires), error(refused), error(ready), number(returned)});
     }},
    {"timedjoin of oneself",
     [] { return elsewhere([] { return error(joinUntil(::pthread_self(), nullptr, timeIn(kShortMs))); }); }},
    {"names of threads",
     [] {
       Semaphore named, go;
       std::string own;
       const pthread_t thread = start([&] {
         own = error(::pthread_setname_np(::pthread_self(), "fifteen letters"));
         named.post();
         go.wait();
         own = text({own, nameOf(::pthread_self())});
       });
       named.wait();
       const std::string before = nameOf(thread);
       const int set = ::pthread_setname_np(thread, "another");
       go.post();
       joined(thread);
       return text({before, error(set), own});
     }},
    {"names that are too long",
     [] {
       char small[15];
       return text({error(::pthread_setname_np(::pthread_self(), "sixteen letters!")),
                    error(::pthread_getname_np(::pthread_self(), small, sizeof small)),
                    elsewhere([] { return error(::pthread_setname_np(::pthread_self(), "sixteen letters!")); })});
     }},
    {"names are inherited",
     [] {
       const std::string before = nameOf(::pthread_self());
       ::pthread_setname_np(::pthread_self(), "parent");
       const std::string child = elsewhere([] {
         std::string inherited = nameOf(::pthread_self());
         ::pthread_setname_np(::pthread_self(), "child");
         return inherited + ' ' + elsewhere([] { return nameOf(::pthread_self()); });
       });
       const std::string after = nameOf(::pthread_self());
       ::pthread_setname_np(::pthread_self(), before.c_str());
       return text({child, after});
     }},
    {"names by prctl",
     [] {
       const std::string before = nameOf(::pthread_self());
       const std::string other = elsewhere([] {
         ::prctl(PR_SET_NAME, "by prctl");
         pauseMs(1);
         char name[16] = "";
         ::prctl(PR_GET_NAME, name);
         return text({nameOf(::pthread_self()), name});
       });
       return text({other, nameOf(::pthread_self()) == before});
     }},
};

// ---- Signals -----------------------------------------------------------------------------------------------------------------

std::atomic<int> g_handled;
std::atomic<pthread_t> g_handler_thread;
std::atomic<pid_t> g_handler_id;
std::atomic<const char*> g_handler_stack;
thread_local const char* t_handler_stack;
Semaphore g_from_handler;

/// Has signals counted, with the thread that they reach, as long as it lives.
class Handler {
 public:
  explicit Handler(int signal = SIGUSR1, int flags = 0, void (*handler)(int) = count) : m_signal(signal) {
    g_handled = 0;
    g_handler_thread = pthread_t{};
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    ::sigaction(signal, &action, &m_before);
  }
  ~Handler() { ::sigaction(m_signal, &m_before, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

  static void count(int) {
    const char here = 0;
    g_handler_thread = ::pthread_self();
    g_handler_id = ::gettid();
    g_handler_stack = t_handler_stack = &here;
    ++g_handled;
  }

 private:
  int m_signal;
  struct sigaction m_before {};
};

sigset_t setOf(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  return set;
}

/// Blocks a signal in the calling thread as long as it lives.
class Blocked {
 public:
  explicit Blocked(int signal) : set(setOf(signal)) { must(::pthread_sigmask(SIG_BLOCK, &set, &m_before)); }
  ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  const sigset_t set;

 private:
  sigset_t m_before{};
};

bool isBlocked(int signal) {
  sigset_t set;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
  return ::sigismember(&set, signal) == 1;
}

bool isPending(int signal) {
  sigset_t set;
  ::sigpending(&set);
  return ::sigismember(&set, signal) == 1;
}

/// What `call` returns in a thread that gets signals until it has returned: one that comes before the wait ends nothing.
template <class Call>
std::string interrupted(Call call, int flags = 0) {
  const Handler handler(SIGUSR1, flags);
  std::atomic<bool> returned{false};
  std::string seen;
  const pthread_t thread = start([&] {
    seen = result(call());
    returned = true;
  });
  while (!returned) {
    ::pthread_kill(thread, SIGUSR1);
    pauseMs(1);
  }
  joined(thread);
  return seen;
}

/// What `call` returns in a thread that gets some signals, before `finish` ends its wait.
template <class Call, class Finish>
std::string resumed(Call call, Finish finish, int flags = SA_RESTART) {
  const Handler handler(SIGUSR1, flags);
  Semaphore started;
  std::string seen;
  const pthread_t thread = start([&] {
    started.post();
    seen = result(call());
  });
  started.wait();
  for (int sent = 0; sent < 5 || g_handled == 0; ++sent) {
    ::pthread_kill(thread, SIGUSR1);
    pauseMs(1);
  }
  const bool reached = ::pthread_equal(g_handler_thread, thread) != 0;
  finish();
  joined(thread);
  return text({seen, reached});
}

constexpr timespec kLongTime{kLongMs / 1000, 0};

int pollFor(int fd, int ms) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, ms);
}

int selectFor(int fd, int ms) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  timeval time{ms / 1000, ms % 1000 * 1000};
  return ::select(fd + 1, &set, nullptr, nullptr, &time);
}

/// Alarms come until the calling thread's pause has ended: one that comes before it ends nothing.
std::string pausedUntilAlarm() {
  const Handler handler(SIGALRM);
  itimerval timer{{0, 20'000}, {0, 20'000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  const std::string paused = result(::pause());
  timer = {};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  return text({paused, g_handled > 0, ::pthread_equal(g_handler_thread, ::pthread_self()) != 0});
}

sigjmp_buf g_jump;

const Case kSignals[] = {
    {"pthread_kill with no signal, and with none that exists",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] { go.wait(); });
       const int none = ::pthread_kill(thread, 0), invalid = ::pthread_kill(thread, 1000);
       go.post();
       joined(thread);
       return text({error(none), error(invalid), error(::pthread_kill(::pthread_self(), 0))});
     }},
    {"a handler runs in the thread that is meant",
     [] {
       const Handler handler;
       Semaphore go, ready;
       pid_t id = 0;
       const pthread_t thread = start([&] {
         id = ::gettid();
         ready.post();
         go.wait();
       });
       ready.wait();
       const int sent = ::pthread_kill(thread, SIGUSR1);
       while (g_handled == 0) pauseMs(1);
       go.post();
       joined(thread);
       return text({error(sent), ::pthread_equal(g_handler_thread, thread) != 0, g_handler_id == id, g_handled.load()});
     }},
    {"a handler runs on the stack of the thread",
     [] {
       const Handler handler;
       Semaphore go;
       const char* outer = nullptr;
       const pthread_t thread = start([&] {
         const char here = 0;
         outer = &here;
         go.wait();
       });
       while (g_handled == 0) {
         ::pthread_kill(thread, SIGUSR1);
         pauseMs(1);
       }
       go.post();
       joined(thread);
       const ptrdiff_t depth = outer - g_handler_stack;
       return text({depth > -(1 << 16) && depth < 1 << 16});
     }},
    {"raise in a thread",
     [] {
       const Handler handler;
       const std::string seen = elsewhere([] {
         const int raised = ::raise(SIGUSR1);
         return text({raised, g_handled.load(), ::pthread_equal(g_handler_thread, ::pthread_self()) != 0});
       });
       return text({seen, g_handled.load()});
     }},
    {"tgkill of a thread",
     [] {
       const Handler handler;
       return elsewhere([] {
         const int sent = ::tgkill(::getpid(), ::gettid(), SIGUSR1);
         return text({sent, g_handled.load(), ::pthread_equal(g_handler_thread, ::pthread_self()) != 0});
       });
     }},
    {"a thread signals main",
     [] {
       const Handler handler;
       const pthread_t main = ::pthread_self();
       const int sent = std::stoi(joined(start([main] { return ::pthread_kill(main, SIGUSR1); })));
       while (g_handled == 0) pauseMs(1);
       return text({error(sent), ::pthread_equal(g_handler_thread, main) != 0});
     }},
    {"a signal ends a read",
     [] {
       const Pipe pipe;
       char byte;
       return interrupted([&] { return ::read(pipe.output(), &byte, 1); });
     }},
    {"a signal ends a nanosleep",
     [] {
       timespec left{};
       const std::string seen = interrupted([&] { return ::nanosleep(&kLongTime, &left); }, SA_RESTART);
       return text({seen, left.tv_sec > 0 && left.tv_sec <= kLongMs / 1000});
     }},
    {"a signal ends a clock_nanosleep",
     [] {
       return interrupted([] {
         errno = ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kLongTime, nullptr);
         return errno == 0 ? 0 : -1;
       });
     }},
    {"a signal ends a sleep",
     [] {
       std::string seen = interrupted([] { return ::sleep(kLongMs / 1000) > 0; });
       return text({seen, interrupted([] { return ::usleep(kLongMs * 1000); })});
     }},
    {"a signal ends a sem_wait",
     [] {
       Semaphore semaphore;
       return text({interrupted([&] { return ::sem_wait(semaphore.get()); }),
                    interrupted([&] { return waitUntil(semaphore, timeIn(kLongMs)); })});
     }},
    {"a signal ends a pause",
     [] {
       return text({interrupted([] { return ::pause(); }), interrupted([] { return ::pause(); }, SA_RESTART)});
     }},
    {"a signal ends poll and select",
     [] {
       const Pipe pipe;
       const epoll_event event{};
       const int epoll = ::epoll_create1(0);
       epoll_event events = event;
       const std::string seen = text({interrupted([&] { return pollFor(pipe.output(), -1); }, SA_RESTART),
                                      interrupted([&] { return selectFor(pipe.output(), kLongMs); }, SA_RESTART),
                                      interrupted([&] { return ::epoll_wait(epoll, &events, 1, -1); }, SA_RESTART)});
       ::close(epoll);
       return seen;
     }},
    {"a signal ends sigsuspend",
     [] {
       return interrupted([] {
         sigset_t none;
         ::sigemptyset(&none);
         return ::sigsuspend(&none);
       });
     }},
    {"a signal ends sigtimedwait",
     [] {
       return interrupted([] {
         const Blocked blocked(SIGUSR2);
         return ::sigtimedwait(&blocked.set, nullptr, &kLongTime);
       });
     }},
    {"a signal ends a recv",
     [] {
       int pair[2];
       must(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
       char byte;
       const std::string seen = interrupted([&] { return ::recv(pair[0], &byte, 1, 0); });
       ::close(pair[0]);
       ::close(pair[1]);
       return seen;
     }},
    {"a read goes on after a signal",
     [] {
       const Pipe pipe;
       char byte;
       return resumed([&] { return ::read(pipe.output(), &byte, 1); }, [&] { pipe.put(); });
     }},
    {"a sem_wait goes on after a signal",
     [] {
       Semaphore semaphore;
       return resumed([&] { return ::sem_wait(semaphore.get()); }, [&] { semaphore.post(); });
     }},
    {"a wait for a mutex goes on after a signal",
     [] {
       Mutex mutex;
       mutex.lock();
       const std::string seen = resumed([&] { return mutex.lock(); }, [&] { mutex.unlock(); }, 0);
       return text({seen, error(mutex.tryLock())});
     }},
    {"a wait for a condition goes on after a signal",
     [] {
       Mutex mutex;
       Condition condition;
       bool go = false;
       return resumed(
           [&] {
             int waited = 0;
             mutex.lock();
             while (!go) waited += waitOn(condition, mutex, Form::kTimed, kLongMs);
             mutex.unlock();
             return waited;
           },
           [&] {
             mutex.lock();
             go = true;
             condition.signal();
             mutex.unlock();
           },
           0);
     }},
    {"a join goes on after a signal",
     [] {
       Semaphore go;
       const pthread_t other = start([&] { go.wait(); });
       return resumed([&] { return ::pthread_join(other, nullptr); }, [&] { go.post(); }, 0);
     }},
    {"a wait at a barrier goes on after a signal",
     [] {
       Barrier barrier(2);
       const auto arrive = [&] {
         const int waited = barrier.wait();
         return waited == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : waited;
       };
       return resumed(arrive, arrive, 0);
     }},
    {"a handler posts a semaphore",
     [] {
       const Handler handler(SIGUSR1, SA_RESTART, [](int) { g_from_handler.post(); });
       Semaphore go;
       const pthread_t waiter = start([] { g_from_handler.wait(); });
       const pthread_t target = start([&] { go.wait(); });
       ::pthread_kill(target, SIGUSR1);
       const std::string woken = joined(waiter);
       go.post();
       return text({woken, joined(target)});
     }},
    {"the mask is a thread's own",
     [] {
       const std::string seen = elsewhere([] {
         const sigset_t set = setOf(SIGUSR2);
         ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
         pauseMs(1);
         return isBlocked(SIGUSR2);
       });
       return text({seen, isBlocked(SIGUSR2), elsewhere([] { return isBlocked(SIGUSR2); })});
     }},
    {"the mask is inherited",
     [] {
       const Blocked blocked(SIGUSR2);
       return text({elsewhere([] { return isBlocked(SIGUSR2); }), elsewhere([] { return isBlocked(SIGUSR1); })});
     }},
    {"masks of two threads that take turns",
     [] {
       return text({runMany(4, [](int i) {
         const int signal = i % 2 == 0 ? SIGUSR1 : SIGUSR2, other = i % 2 == 0 ? SIGUSR2 : SIGUSR1;
         const Blocked blocked(signal);
         int wrong = 0;
         for (int round = 0; round < 10; ++round) {
           pauseMs(1);
           wrong += isBlocked(signal) && !isBlocked(other) ? 0 : 1;
         }
         return wrong;
       })});
     }},
    {"what pthread_sigmask refuses",
     [] {
       const sigset_t set = setOf(SIGUSR2);
       return text({error(::pthread_sigmask(99, &set, nullptr))});
     }},
    {"a blocked signal stays pending",
     [] {
       const Handler handler;
       return elsewhere([] {
         const Blocked blocked(SIGUSR1);
         ::raise(SIGUSR1);
         pauseMs(1);
         const bool pending = isPending(SIGUSR1);
         const int before = g_handled;
         ::pthread_sigmask(SIG_UNBLOCK, &blocked.set, nullptr);
         return text({pending, before, g_handled.load(), isPending(SIGUSR1)});
       });
     }},
    {"a blocked signal from another thread stays pending",
     [] {
       const Handler handler;
       Semaphore ready, sent;
       std::string seen;
       const pthread_t thread = start([&] {
         const Blocked blocked(SIGUSR1);
         ready.post();
         sent.wait();
         const bool pending = isPending(SIGUSR1);
         const int before = g_handled;
         ::pthread_sigmask(SIG_UNBLOCK, &blocked.set, nullptr);
         seen = text({pending, before, g_handled.load()});
       });
       ready.wait();
       ::pthread_kill(thread, SIGUSR1);
       const bool mains = isPending(SIGUSR1);
       sent.post();
       joined(thread);
       return text({mains, seen, ::pthread_equal(g_handler_thread, thread) != 0});
     }},
    {"a signal of the process reaches who does not block it",
     [] {
       const Handler handler;
       Semaphore ready, go;
       const pthread_t thread = start([&] {
         ready.post();
         go.wait();
       });
       ready.wait();
       const Blocked blocked(SIGUSR1);
       ::kill(::getpid(), SIGUSR1);
       while (g_handled == 0) pauseMs(1);
       go.post();
       joined(thread);
       return text({::pthread_equal(g_handler_thread, thread) != 0, g_handled.load()});
     }},
    {"sigwait takes a signal of the process",
     [] {
       const Blocked blocked(SIGUSR1);
       int signal = 0;
       const pthread_t thread = start([&] { return ::sigwait(&blocked.set, &signal); });
       ::kill(::getpid(), SIGUSR1);
       const std::string returned = joined(thread);
       return text({returned, signal == SIGUSR1, isPending(SIGUSR1)});
     }},
    {"sigwait takes a signal of the thread",
     [] {
       const Blocked blocked(SIGUSR1);
       siginfo_t info{};
       const pthread_t thread = start([&] { return ::sigwaitinfo(&blocked.set, &info); });
       ::pthread_kill(thread, SIGUSR1);
       const bool right = std::stoi(joined(thread)) == SIGUSR1;
       return text({right, info.si_code == SI_TKILL, info.si_pid == ::getpid()});
     }},
    {"each sigwait takes its own signal",
     [] {
       const Blocked blocked(SIGUSR1);
       const std::vector<pthread_t> threads = startMany(4, [set = blocked.set](int) {
         int signal = 0;
         return ::sigwait(&set, &signal);
       });
       for (const pthread_t thread : threads) ::pthread_kill(thread, SIGUSR1);
       return text({joinMany(threads), isPending(SIGUSR1)});
     }},
    {"pthread_sigqueue",
     [] {
       const Blocked blocked(SIGUSR1);
       siginfo_t info{};
       const pthread_t thread = start([&] { return ::sigwaitinfo(&blocked.set, &info); });
       sigval sent{};
       sent.sival_int = 77;
       const int queued = ::pthread_sigqueue(thread, SIGUSR1, sent);
       joined(thread);
       return text({error(queued), info.si_value.sival_int, info.si_code == SI_QUEUE});
     }},
    {"sigtimedwait expires",
     [] {
       return elsewhere([] {
         const Blocked blocked(SIGUSR2);
         const timespec soon{0, 2'000'000}, none{}, wrong = nowhere();
         std::string seen;
         for (const timespec& time : {soon, none, wrong})
           seen += text({result(::sigtimedwait(&blocked.set, nullptr, &time)), ""});
         return seen;
       });
     }},
    {"kill of a thread that has ended",
     [] {
       const pthread_t thread = start([] {});
       pauseMs(20);
       const int sent = ::pthread_kill(thread, 0);
       joined(thread);
       return error(sent);
     }},
    {"an alarm while main pauses", [] { return pausedUntilAlarm(); }},
    {"an alarm while main pauses and threads wait",
     [] {
       Semaphore go;
       std::vector<pthread_t> threads;
       {
         const Blocked blocked(SIGALRM);
         threads = startMany(5, [&](int) {
           go.wait();
           return 1;
         });
       }
       const std::string paused = pausedUntilAlarm();
       for (int i = 0; i < 5; ++i) go.post();
       return text({paused, joinMany(threads)});
     }},
    {"a timer that starts threads",
     [] {
       static Semaphore expired;
       sigevent event{};
       event.sigev_notify = SIGEV_THREAD;
       event.sigev_value.sival_int = 9;
       event.sigev_notify_function = [](sigval sent) {
         if (sent.sival_int == 9) expired.post();
       };
       timer_t timer{};
       must(::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 ? 0 : errno);
       const itimerspec times{{0, 2'000'000}, {0, 2'000'000}};
       ::timer_settime(timer, 0, &times, nullptr);
       expired.wait(3);
       return result(::timer_delete(timer));
     }},
    {"the signal stack is a thread's own",
     [] {
       const Handler handler(SIGUSR1, SA_ONSTACK);
       return text({runMany(3, [](int) {
         std::vector<char> memory(1 << 16);
         stack_t stack{}, none{}, before{};
         stack.ss_sp = memory.data();
         stack.ss_size = memory.size();
         ::sigaltstack(&stack, &before);
         pauseMs(1);
         ::raise(SIGUSR1);
         const char* const seen = t_handler_stack;
         none.ss_flags = SS_DISABLE;
         ::sigaltstack(&none, nullptr);
         return (before.ss_flags & SS_DISABLE) != 0 && seen > memory.data() && seen < memory.data() + memory.size() ? 1 : 0;
       })});
     }},
    {"a jump out of a handler of a fault",
     [] {
       const Handler handler(SIGSEGV, SA_NODEFER, [](int) { siglongjmp(g_jump, 1); });
       return elsewhere([] {
         if (sigsetjmp(g_jump, 1) != 0) return "jumped";
         *static_cast<volatile int*>(::mmap(nullptr, pageSize(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) = 1;
         return "written";
       });
     }},
    {"a jump within a thread",
     [] {
       return text({runMany(4, [](int i) {
         std::jmp_buf jump;
         const volatile int mine = i;
         if (setjmp(jump) == 0) {
           pauseMs(1);
           std::longjmp(jump, 1);
         }
         return mine == i ? 1 : 0;
       })});
     }},
};

// ---- Cancellation ------------------------------------------------------------------------------------------------------------

/// Cancels a thread in `call`, or before it gets there, which ends it there. If the call is no place where a cancel ends a thread,
/// `finish` ends the wait.
template <class Call, class Finish>
std::string canceled(Call call, Finish finish) {
  Semaphore started;
  bool returned = false;
  const pthread_t thread = start([&] {
    const Frame frame("unwound");
    started.post();
    call();
    returned = true;
    ::pthread_testcancel();
    return 1;
  });
  started.wait();
  pauseMs(kShortMs);
  const int sent = ::pthread_cancel(thread);
  finish();
  const std::string end = joined(thread);
  return text({error(sent), end, said(), "returned:", returned});
}

template <class Call>
std::string canceled(Call call) {
  return canceled(call, [] {});
}

/// The same for a call on a socket that nothing reaches.
template <class Call>
std::string canceledOnSocket(Call call) {
  int pair[2];
  must(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  std::string seen = canceled([&] { call(pair[0]); });
  ::close(pair[0]);
  ::close(pair[1]);
  return seen;
}

void fill(int fd) {
  const std::array<char, 4096> block{};
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  while (::write(fd, block.data(), block.size()) > 0) {
  }
  ::fcntl(fd, F_SETFL, flags);
}

void unlockIt(void* mutex) { say(error(static_cast<Mutex*>(mutex)->unlock()).c_str()); }

/// A thread that waits on a condition is canceled. Its handler finds the mutex held.
std::string canceledOnCondition(Form form) {
  Mutex mutex(PTHREAD_MUTEX_ERRORCHECK);
  Condition condition;
  const std::string seen = canceled([&] {
    mutex.lock();
    pthread_cleanup_push(unlockIt, &mutex);
    for (;;) waitOn(condition, mutex, form, kLongMs);
    pthread_cleanup_pop(0);
  });
  return text({seen, error(mutex.tryLock()), error(mutex.unlock())});
}

const Case kCancellation[] = {
    {"cancel of a pause", [] { return canceled([] { ::pause(); }); }},
    {"cancel of a sleep", [] { return canceled([] { ::sleep(kLongMs / 1000); }); }},
    {"cancel of a usleep", [] { return canceled([] { ::usleep(kLongMs * 1000); }); }},
    {"cancel of a nanosleep", [] { return canceled([] { ::nanosleep(&kLongTime, nullptr); }); }},
    {"cancel of a clock_nanosleep", [] { return canceled([] { ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kLongTime, nullptr); }); }},
    {"cancel of std::this_thread::sleep_for", [] { return canceled([] { std::this_thread::sleep_for(kLong); }); }},
    {"cancel of a read",
     [] {
       const Pipe pipe;
       return canceled([&] { pipe.get(); });
     }},
    {"cancel of a write",
     [] {
       const Pipe pipe;
       fill(pipe.input());
       return canceled([&] { pipe.put(); });
     }},
    {"cancel of a recv",
     [] {
       return canceledOnSocket([](int fd) {
         char byte;
         ::recv(fd, &byte, 1, 0);
       });
     }},
    {"cancel of a recvmsg",
     [] {
       return canceledOnSocket([](int fd) {
         msghdr message{};
         ::recvmsg(fd, &message, 0);
       });
     }},
    {"cancel of an accept",
     [] {
       const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
       ::listen(listener, 1);
       const std::string seen = canceled([&] { ::accept(listener, nullptr, nullptr); });
       ::close(listener);
       return seen;
     }},
    {"cancel of a poll",
     [] {
       const Pipe pipe;
       return canceled([&] { pollFor(pipe.output(), -1); });
     }},
    {"cancel of a select",
     [] {
       const Pipe pipe;
       return canceled([&] { selectFor(pipe.output(), kLongMs); });
     }},
    {"cancel of an epoll_wait",
     [] {
       const int epoll = ::epoll_create1(0);
       epoll_event event{};
       const std::string seen = canceled([&] { ::epoll_wait(epoll, &event, 1, -1); });
       ::close(epoll);
       return seen;
     }},
    {"cancel of a sigwait",
     [] {
       const Blocked blocked(SIGUSR2);
       int signal = 0;
       return canceled([&] { ::sigwait(&blocked.set, &signal); });
     }},
    {"cancel of a sem_wait",
     [] {
       Semaphore semaphore;
       return text({canceled([&] { ::sem_wait(semaphore.get()); }), canceled([&] { waitUntil(semaphore, timeIn(kLongMs)); })});
     }},
    {"cancel of a join",
     [] {
       Semaphore go;
       const pthread_t other = start([&] {
         go.wait();
         return 3;
       });
       const std::string seen = canceled([&] { ::pthread_join(other, nullptr); });
       go.post();
       return text({seen, joined(other)});
     }},
    {"cancel of a wait for a child",
     [] {
       const pid_t child = ::fork();
       if (child == 0) {
         ::pause();
         ::_exit(0);
       }
       const std::string seen = canceled([&] { ::waitpid(child, nullptr, 0); });
       ::kill(child, SIGTERM);
       return text({seen, reaped(child)});
     }},
    {"cancel of a wait for a condition",
     [] {
       return text({canceledOnCondition(Form::kWait), canceledOnCondition(Form::kTimed), canceledOnCondition(Form::kClock)});
     }},
    {"cancel of a wait for a mutex waits for it",
     [] {
       Mutex mutex;
       mutex.lock();
       const std::string seen = canceled([&] { mutex.lock(); }, [&] { mutex.unlock(); });
       return text({seen, error(mutex.tryLock()), error(mutex.unlock())});
     }},
    {"cancel of a wait at a barrier waits for it",
     [] {
       Barrier barrier(2);
       return canceled([&] { barrier.wait(); }, [&] { barrier.wait(); });
     }},
    {"cancel of a wait for a lock of readers and writers waits for it",
     [] {
       ReadWriteLock lock;
       lock.write();
       return text({canceled([&] { lock.read(); }, [&] { lock.unlock(); }), error(lock.unlock())});
     }},
    {"cancel of cnd_wait",
     [] {
       return withMtx(mtx_plain, [] {
         const std::string waits = canceled([] {
           ::mtx_lock(&g_mtx);
           for (;;) ::cnd_wait(&g_cnd, &g_mtx);
         });
         ::mtx_unlock(&g_mtx);
         return waits;
       });
     }},
    {"cancel before the thread waits",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] {
         while (::sem_trywait(go.get()) != 0) ::sched_yield();  // no place where a cancel ends it
         say("still here");
         ::pause();
       });
       ::pthread_cancel(thread);
       go.post();
       const std::string end = joined(thread);
       return text({end, said()});
     }},
    {"cancel of oneself",
     [] {
       const std::string end = joined(start([] {
         const int sent = ::pthread_cancel(::pthread_self());
         say(error(sent).c_str());
         ::pthread_testcancel();
         return 1;
       }));
       return text({end, said()});
     }},
    {"cancel while it is disabled",
     [] {
       Semaphore started, go;
       const pthread_t thread = start([&] {
         int before = -1;
         ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
         started.post();
         go.wait();
         ::pthread_testcancel();
         pauseMs(1);
         say(before == PTHREAD_CANCEL_ENABLE ? "was enabled" : "was disabled");
         ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
         say(before == PTHREAD_CANCEL_DISABLE ? "was disabled" : "was enabled");
         ::pthread_testcancel();
         return 1;
       });
       started.wait();
       ::pthread_cancel(thread);
       go.post();
       const std::string end = joined(thread);
       return text({end, said()});
     }},
    {"cancel of a thread that never looks",
     [] {
       Semaphore started;
       std::atomic<bool> go{false};
       const pthread_t thread = start([&] {
         started.post();
         while (!go) ::sched_yield();
         return 4;
       });
       started.wait();
       ::pthread_cancel(thread);
       go = true;
       return joined(thread);
     }},
    {"states and types of cancellation",
     [] {
       return elsewhere([] {
         int state = -1, type = -1;
         const int wrong_state = ::pthread_setcancelstate(99, nullptr), wrong_type = ::pthread_setcanceltype(99, nullptr);
         ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
         ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
         return text({error(wrong_state), error(wrong_type), state == PTHREAD_CANCEL_ENABLE, type == PTHREAD_CANCEL_DEFERRED});
       });
     }},
    {"cancel at once when it becomes asynchronous",
     [] {
       const std::string end = joined(start([] {
         ::pthread_cancel(::pthread_self());
         ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
         return 1;
       }));
       return end;
     }},
    {"cancel of a thread that computes",
     [] {
       Semaphore started;
       const pthread_t thread = start([&] {
         ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
         started.post();
         for (volatile int i = 0;;) i = i + 1;
       });
       started.wait();
       ::pthread_cancel(thread);
       return joined(thread);
     }},
    {"cleanup handlers of a canceled thread",
     [] {
       const pthread_t thread = start([] {
         pthread_cleanup_push(sayArgument, g_one);
         const Frame frame("frame");
         pthread_cleanup_push(sayArgument, g_two);
         ::pause();
         pthread_cleanup_pop(0);
         pthread_cleanup_pop(0);
       });
       ::pthread_cancel(thread);
       const std::string end = joined(thread);
       return text({end, said()});
     }},
    {"a cleanup handler of a canceled thread waits",
     [] {
       const pthread_t thread = start([] {
         pthread_cleanup_push(
             [](void* what) {
               pauseMs(2);  // it is no longer canceled
               sayArgument(what);
             },
             g_one);
         ::pause();
         pthread_cleanup_pop(0);
       });
       ::pthread_cancel(thread);
       ::pthread_cancel(thread);
       const std::string end = joined(thread);
       return text({end, said()});
     }},
    {"cancel through a catch",
     [] {
       const pthread_t thread = start([] {
         try {
           ::pause();
         } catch (...) {
           say("caught");
           throw;
         }
       });
       ::pthread_cancel(thread);
       const std::string end = joined(thread);
       return text({end, said()});
     }},
    {"cancel of a detached thread",
     [] {
       static Semaphore over;
       struct Over {
         ~Over() { over.post(); }
       };
       const pthread_t thread = start([] {
         const Over at_the_end;
         ::pause();
       });
       ::pthread_cancel(thread);
       ::pthread_detach(thread);
       over.wait();
       return text({"over"});
     }},
    {"cancel of std::thread",
     [] {
       std::thread thread([] {
         const Frame frame("unwound");
         ::pause();
       });
       const int sent = ::pthread_cancel(thread.native_handle());
       thread.join();
       return text({error(sent), said()});
     }},
    {"cancel of 50 threads",
     [] {
       Semaphore never;
       const std::vector<pthread_t> threads = startMany(50, [&](int) { never.wait(); });
       int count = 0;
       for (const pthread_t thread : threads) ::pthread_cancel(thread);
       for (const pthread_t thread : threads) count += joined(thread) == "canceled" ? 1 : 0;
       return text({count});
     }},
    {"a cancel between the reads of a thread",
     [] {
       const Pipe pipe;
       Semaphore got;
       const pthread_t thread = start([&] {
         for (;;) {
           pipe.get();
           got.post();
         }
       });
       for (int i = 0; i < 10; ++i) {
         pipe.put();
         got.wait();
       }
       ::pthread_cancel(thread);
       return joined(thread);
     }},
};

// ---- Processes ---------------------------------------------------------------------------------------------------------------

/// How a child of the calling thread ends that leaves with what `call` returns.
template <class Call>
std::string forked(Call call) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(call());
  return child < 0 ? error(errno) : reaped(child);
}

/// The entries of /proc/self/task: the threads that the kernel knows.
int kernelThreads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

std::atomic<bool> g_fork_says;
void sayOfFork(const char* what) {
  if (g_fork_says) say(what);
}

std::string printedBy(const char* command) {
  FILE* const stream = ::popen(command, "r");
  if (stream == nullptr) return error(errno);
  std::string printed;
  for (int c; (c = std::fgetc(stream)) != EOF;) printed += c == '\n' ? '|' : static_cast<char>(c);
  return text({printed, ended(::pclose(stream))});
}

const Case kProcesses[] = {
    {"fork in a thread", [] { return elsewhere([] { return forked([] { return 5; }); }); }},
    {"fork in many threads",
     [] {
       return text({runMany(8, [](int i) { return forked([i] { return 10 + i; }) == text({"exit", 10 + i}) ? 1 : 0; })});
     }},
    {"a child of a thread has one thread",
     [] {
       Semaphore go;
       const pthread_t other = start([&] { go.wait(); });
       const std::string seen = elsewhere([] { return forked(kernelThreads); });
       go.post();
       joined(other);
       return seen;
     }},
    {"a child of a thread is that thread",
     [] {
       return elsewhere([] {
         const pthread_t self = ::pthread_self();
         t_zero = 20;
         errno = EDOM;
         return forked([self] {
           return t_zero + (::pthread_equal(self, ::pthread_self()) != 0 ? 1 : 0) + (errno == EDOM ? 2 : 0) +
                  (::gettid() == ::getpid() ? 4 : 0);
         });
       });
     }},
    {"a child of a thread makes threads",
     [] {
       const auto sum = [] { return static_cast<int>(runMany(4, [](int i) { return i; })); };
       return text({elsewhere([sum] { return forked(sum); }), forked(sum)});
     }},
    {"a child of a thread waits",
     [] {
       return elsewhere([] {
         return forked([] {
           Semaphore semaphore;
           Mutex mutex;
           pauseMs(1);
           mutex.lock();
           return waitUntil(semaphore, timeIn(kShortMs)) == -1 && errno == ETIMEDOUT ? 6 : 7;
         });
       });
     }},
    {"a child of a thread forks",
     [] { return elsewhere([] { return forked([] { return forked([] { return 3; }) == "exit 3" ? 8 : 9; }); }); }},
    {"a child of a thread leaves by pthread_exit",
     [] {
       return elsewhere([] {
         return forked([]() -> int {
           const Frame frame("unwound");
           ::pthread_exit(nullptr);
         });
       });
     }},
    {"handlers of fork",
     [] {
       must(::pthread_atfork([] { sayOfFork("prepare 1"); }, [] { sayOfFork("parent 1"); }, [] { sayOfFork("child 1"); }));
       must(::pthread_atfork([] { sayOfFork("prepare 2"); }, [] { sayOfFork("parent 2"); }, [] { sayOfFork("child 2"); }));
       g_fork_says = true;
       const Pipe pipe;
       const std::string child = elsewhere([&] {
         return forked([&] {
           const std::string line = said();
           return ::write(pipe.input(), line.data(), line.size()) > 0 ? 1 : 2;
         });
       });
       g_fork_says = false;
       std::array<char, 256> line{};
       const ssize_t length = ::read(pipe.output(), line.data(), line.size());
       return text({child, said(), std::string(line.data(), static_cast<size_t>(length))});
     }},
    {"vfork in a thread",
     [] {
       return elsewhere([] {
         const pid_t child = ::vfork();
         if (child == 0) ::_exit(9);
         return reaped(child);
       });
     }},
    {"posix_spawn in a thread",
     [] {
       return elsewhere([] {
         char name[] = "sh", option[] = "-c", command[] = "exit 12";
         char* arguments[] = {name, option, command, nullptr};
         pid_t child = 0;
         const int spawned = ::posix_spawnp(&child, name, nullptr, nullptr, arguments, environ);
         return text({error(spawned), reaped(child)});
       });
     }},
    {"popen in threads",
     [] {
       return text({elsewhere([] { return printedBy("echo one; echo two; exit 3"); }),
                    runMany(4, [](int) { return printedBy("echo x") == "x| exit 0" ? 1 : 0; })});
     }},
    {"system in a thread", [] { return elsewhere([] { return ended(std::system("exit 4")); }); }},
    {"a thread waits for the child of another",
     [] {
       const pid_t child = ::fork();
       if (child == 0) {
         pauseMs(kShortMs);
         ::_exit(2);
       }
       return elsewhere([child] { return reaped(child); });
     }},
};

// ---- The processor, input and output, libraries ------------------------------------------------------------------------------

/// A socket that listens on a free port of the loopback.
class Listener {
 public:
  Listener() : m_socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    m_address.sin_family = AF_INET;
    m_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof m_address;
    if (::bind(m_socket, address(), length) != 0 || ::listen(m_socket, 64) != 0 ||
        ::getsockname(m_socket, address(), &length) != 0) {
      throw std::runtime_error(error(errno));
    }
  }
  ~Listener() { ::close(m_socket); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int accept() const { return ::accept(m_socket, nullptr, nullptr); }
  int connect() {
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(client, address(), sizeof m_address) != 0) throw std::runtime_error(error(errno));
    return client;
  }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&m_address); }
  int m_socket;
  sockaddr_in m_address{};
};

/// Sends back what comes, and closes.
int echo(int socket) {
  std::array<char, 100> buffer{};
  ssize_t length = 0;
  while ((length = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0) {
    ::send(socket, buffer.data(), static_cast<size_t>(length), MSG_NOSIGNAL);
  }
  return ::close(socket);
}

/// How many of `rounds` numbers come back.
int asks(int socket, int rounds) {
  int right = 0;
  for (int i = 0; i < rounds; ++i) {
    int back = -1;
    ::send(socket, &i, sizeof i, MSG_NOSIGNAL);
    right += ::recv(socket, &back, sizeof back, MSG_WAITALL) == sizeof back && back == i ? 1 : 0;
  }
  ::shutdown(socket, SHUT_WR);
  char byte;
  return ::recv(socket, &byte, 1, 0) == 0 ? right : -1;
}

/// A temporary stream, and how many of its lines are one letter repeated.
class Lines {
 public:
  ~Lines() { std::fclose(stream); }
  std::string text() const {
    std::rewind(stream);
    int whole = 0, torn = 0;
    for (std::array<char, 200> line{}; std::fgets(line.data(), line.size(), stream) != nullptr;) {
      const std::string_view letters(line.data());
      const bool right = letters.size() == 41 && letters.find_first_not_of(letters[0]) == 40;
      ++(right ? whole : torn);
    }
    return ::text({whole, torn});
  }
  FILE* const stream = std::tmpfile();
};

std::string addressOf(const char* host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  const int failed = ::getaddrinfo(host, "80", &hints, &found);
  if (failed != 0) return ::gai_strerror(failed);
  std::array<char, 64> address{};
  ::getnameinfo(found->ai_addr, found->ai_addrlen, address.data(), address.size(), nullptr, 0, NI_NUMERICHOST);
  ::freeaddrinfo(found);
  return address.data();
}

int64_t nanoseconds(clockid_t clock) {
  timespec time{};
  return ::clock_gettime(clock, &time) == 0 ? time.tv_sec * 1'000'000'000 + time.tv_nsec : -1;
}

const Case kRest[] = {
    {"yields in turns",
     [] {
       std::atomic<int> turn{0};
       runMany(2, [&](int mine) {
         for (int i = 0; i < 1000; ++i) {
           while (turn % 2 != mine) ::sched_yield();
           ++turn;
         }
         return 0;
       });
       return text({turn.load()});
     }},
    {"a thread spins until another sets a flag",
     [] {
       std::atomic<bool> flag{false};
       const std::vector<pthread_t> threads = startMany(2, [&](int i) {
         if (i == 1) flag = true;
         while (!flag) {
         }
         return 1;
       });
       return text({joinMany(threads)});
     }},
    {"main spins until a thread sets a flag",
     [] {
       std::atomic<bool> flag{false};
       const pthread_t thread = start([&] { flag = true; });
       while (!flag) {
       }
       return joined(thread);
     }},
    {"a thread spins over the clock until another sets a flag",
     [] {
       std::atomic<bool> flag{false};
       const std::vector<pthread_t> threads = startMany(2, [&](int i) {
         if (i == 1) flag = true;
         while (!flag && nanoseconds(CLOCK_MONOTONIC) > 0) {
         }
         return 1;
       });
       return text({joinMany(threads)});
     }},
    {"a thread tries a lock until another gives it",
     [] {
       Mutex mutex;
       mutex.lock();
       const pthread_t thread = start([&] {
         while (mutex.tryLock() != 0) {
         }
         return mutex.unlock();
       });
       pauseMs(1);
       mutex.unlock();
       return joined(thread);
     }},
    {"the processor",
     [] {
       return text({elsewhere([] { return ::sched_getcpu() >= 0; }), elsewhere([] {
                      unsigned processor = ~0U, node = ~0U;
                      return ::getcpu(&processor, &node) == 0 && processor < 100'000;
                    })});
     }},
    {"processors of a thread",
     [] {
       const int all = processors();
       return text({elsewhere([all] { return processors() == all; }), elsewhere([] {
                      cpu_set_t set, none;
                      CPU_ZERO(&none);
                      ::pthread_getaffinity_np(::pthread_self(), sizeof set, &set);
                      return text({error(::pthread_setaffinity_np(::pthread_self(), sizeof set, &set)),
                                   error(::pthread_setaffinity_np(::pthread_self(), sizeof none, &none))});
                    })});
     }},
    {"one processor for a thread",
     [] {
       const int all = processors();
       const std::string one = elsewhere([] {
         const int here = ::sched_getcpu();
         cpu_set_t set;
         CPU_ZERO(&set);
         CPU_SET(static_cast<size_t>(here), &set);
         must(::pthread_setaffinity_np(::pthread_self(), sizeof set, &set));
         pauseMs(1);
         return text({processors(), ::sched_getcpu() == here});
       });
       return text({one, processors() == all});
     }},
    {"processors of another thread",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] { go.wait(); });
       cpu_set_t set, mine;
       const int got = ::pthread_getaffinity_np(thread, sizeof set, &set);
       ::pthread_getaffinity_np(::pthread_self(), sizeof mine, &mine);
       const int put = ::pthread_setaffinity_np(thread, sizeof set, &set);
       go.post();
       joined(thread);
       return text({error(got), CPU_EQUAL(&set, &mine) != 0, error(put)});
     }},
    {"the policy of a thread",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] { go.wait(); });
       int policy = -1;
       sched_param parameters{}, wrong{};
       wrong.sched_priority = 50;
       const int got = ::pthread_getschedparam(thread, &policy, &parameters);
       const int set = ::pthread_setschedparam(thread, SCHED_OTHER, &parameters);
       const int refused = ::pthread_setschedparam(thread, SCHED_OTHER, &wrong);
       const int invalid = ::pthread_setschedparam(thread, 99, &parameters), priority = ::pthread_setschedprio(thread, 0);
       go.post();
       joined(thread);
       return text({error(got), policy == SCHED_OTHER, parameters.sched_priority, error(set), error(refused), error(invalid),
                    error(priority)});
     }},
    {"the concurrency that was asked for",
     [] {
       const int set = ::pthread_setconcurrency(4), refused = ::pthread_setconcurrency(-1);
       const int now = ::pthread_getconcurrency();
       ::pthread_setconcurrency(0);
       return text({error(set), error(refused), now});
     }},
    {"the clock of a thread's processor time",
     [] {
       return elsewhere([] {
         clockid_t clock = -1;
         const int got = ::pthread_getcpuclockid(::pthread_self(), &clock);
         const int64_t before = nanoseconds(CLOCK_THREAD_CPUTIME_ID), mine = nanoseconds(clock);
         recursion(1000);
         return text(
             {error(got), before >= 0, mine >= 0, nanoseconds(CLOCK_THREAD_CPUTIME_ID) >= before, nanoseconds(clock) >= mine});
       });
     }},
    {"the clock of another thread's processor time",
     [] {
       Semaphore go;
       const pthread_t thread = start([&] { go.wait(); });
       clockid_t clock = -1;
       const int got = ::pthread_getcpuclockid(thread, &clock);
       const int64_t before = nanoseconds(clock), after = nanoseconds(clock);
       go.post();
       joined(thread);
       return text({error(got), before >= 0, after >= before});
     }},
    {"a sleep until a time that is past",
     [] {
       return elsewhere([] {
         const timespec past = timeIn(-1000, CLOCK_MONOTONIC), wrong = nowhere();
         return text({::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, nullptr),
                      error(::clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, nullptr)), result(::nanosleep(&wrong, nullptr))});
       });
     }},
    {"a byte through a ring of pipes",
     [] {
       std::array<Pipe, 10> pipes;
       const std::vector<pthread_t> threads = startMany(10, [&](int i) {
         for (int round = 0; round < 20; ++round) {
           const char byte = pipes[static_cast<size_t>(i)].get();
           if (i != 9 || round != 19) pipes[static_cast<size_t>(i + 1) % 10].put(static_cast<char>(byte + (i == 9 ? 1 : 0)));
           if (i == 9 && round == 19) return static_cast<int>(byte);
         }
         return 0;
       });
       pipes[0].put('a');
       return text({joinMany(threads) - 'a'});
     }},
    {"a megabyte through a pipe",
     [] {
       Pipe pipe;
       const pthread_t writer = start([&] {
         const std::string data(1 << 20, 'x');
         const ssize_t written = ::write(pipe.input(), data.data(), data.size());
         pipe.closeInput();
         return written;
       });
       intptr_t sum = 0;
       std::array<char, 5000> buffer{};
       for (ssize_t length; (length = ::read(pipe.output(), buffer.data(), buffer.size())) > 0;) sum += length;
       return text({sum, joined(writer)});
     }},
    {"the other end closes",
     [] {
       Pipe pipe;
       const pthread_t reader = start([&] {
         char byte;
         return ::read(pipe.output(), &byte, 1);
       });
       pauseMs(kShortMs);
       pipe.closeInput();
       return joined(reader);
     }},
    {"echo over sockets of a pair",
     [] {
       int pair[2];
       must(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
       const pthread_t server = start([&] { return echo(pair[0]); });
       const int right = asks(pair[1], 100);
       ::close(pair[1]);
       return text({right, joined(server)});
     }},
    {"an echo server with a thread for each client",
     [] {
       Listener listener;
       const pthread_t server = start([&] {
         std::vector<pthread_t> threads;
         for (int i = 0; i < 20; ++i) threads.push_back(start([socket = listener.accept()] { return echo(socket); }));
         return joinMany(threads);
       });
       const intptr_t right = runMany(20, [&](int) {
         const int client = listener.connect();
         const int answers = asks(client, 20);
         ::close(client);
         return answers;
       });
       return text({right, joined(server)});
     }},
    {"a receive expires",
     [] {
       int pair[2];
       must(::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
       const timeval time{0, 3000};
       ::setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
       const std::string seen = elsewhere([&] {
         char byte;
         return result(::recv(pair[0], &byte, 1, 0));
       });
       ::close(pair[0]);
       ::close(pair[1]);
       return seen;
     }},
    {"poll and select expire, and are woken",
     [] {
       const Pipe pipe;
       std::string seen = elsewhere([&] {
         return text({pollFor(pipe.output(), 3), selectFor(pipe.output(), 3), pollFor(pipe.output(), 0)});
       });
       const std::vector<pthread_t> threads =
           startMany(4, [&](int i) { return i % 2 == 0 ? pollFor(pipe.output(), kLongMs) : selectFor(pipe.output(), kLongMs); });
       pipe.put();
       return text({seen, joinMany(threads)});
     }},
    {"events of epoll and eventfd",
     [] {
       const int epoll = ::epoll_create1(0), event = ::eventfd(0, EFD_SEMAPHORE);
       epoll_event wanted{};
       wanted.events = EPOLLIN;
       ::epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted);
       const pthread_t waiter = start([&] {
         epoll_event got{};
         return ::epoll_wait(epoll, &got, 1, kLongMs);
       });
       const std::vector<pthread_t> readers = startMany(5, [&](int) {
         eventfd_t got = 0;
         pollFor(event, kLongMs);
         return ::eventfd_read(event, &got) == 0 ? static_cast<int>(got) : -1;
       });
       ::eventfd_write(event, 6);
       std::string seen = text({joined(waiter), joinMany(readers)});
       ::close(event);
       ::close(epoll);
       return seen;
     }},
    {"a timerfd in a thread",
     [] {
       return elsewhere([] {
         const int timer = ::timerfd_create(CLOCK_MONOTONIC, 0);
         const itimerspec times{{0, 0}, {0, 2'000'000}};
         ::timerfd_settime(timer, 0, &times, nullptr);
         uint64_t expired = 0;
         const ssize_t length = ::read(timer, &expired, sizeof expired);
         ::close(timer);
         return text({length, expired});
       });
     }},
    {"lines of many threads are whole",
     [] {
       const Lines lines;
       runMany(8, [&](int i) {
         const std::string letters(40, static_cast<char>('a' + i));
         for (int line = 0; line < 100; ++line) {
           if (line % 2 == 0) std::fprintf(lines.stream, "%s\n", letters.c_str());
           if (line % 2 == 1) std::fputs((letters + '\n').c_str(), lines.stream);
           if (line % 16 == 0) ::sched_yield();
         }
         return 0;
       });
       return lines.text();
     }},
    {"lines under flockfile are whole",
     [] {
       const Lines lines;
       runMany(4, [&](int i) {
         for (int line = 0; line < 10; ++line) {
           ::flockfile(lines.stream);
           for (int letter = 0; letter < 40; ++letter) {
             std::fputc('a' + i, lines.stream);
             if (letter == 20) pauseMs(1);
           }
           std::fputc('\n', lines.stream);
           ::funlockfile(lines.stream);
         }
         return 0;
       });
       return lines.text();
     }},
    {"ftrylockfile",
     [] {
       const Lines lines;
       ::flockfile(lines.stream);
       const bool again = ::ftrylockfile(lines.stream) == 0;
       const std::string other = elsewhere([&] { return ::ftrylockfile(lines.stream) == 0; });
       ::funlockfile(lines.stream);
       ::funlockfile(lines.stream);
       return text({again, other, elsewhere([&] {
                      const bool locked = ::ftrylockfile(lines.stream) == 0;
                      ::funlockfile(lines.stream);
                      return locked;
                    })});
     }},
    {"a stream on a pipe",
     [] {
       Pipe pipe;
       const pthread_t writer = start([&] {
         for (int i = 0; i < 3; ++i) {
           must(::dprintf(pipe.input(), "line %d\n", i) == 7 ? 0 : EIO);
           pauseMs(1);
         }
         pipe.closeInput();
       });
       std::string seen;
       FILE* const stream = ::fdopen(::dup(pipe.output()), "r");
       for (std::array<char, 100> line{}; std::fgets(line.data(), line.size(), stream) != nullptr;) seen += line.data();
       std::fclose(stream);
       std::replace(seen.begin(), seen.end(), '\n', '|');
       return text({seen, joined(writer)});
     }},
    {"getaddrinfo in threads",
     [] {
       return text({elsewhere([] { return addressOf("localhost"); }),
                    runMany(10, [](int) { return addressOf("localhost") == "127.0.0.1" ? 1 : 0; })});
     }},
    {"dlopen in a thread",
     [] {
       return elsewhere([] {
         void* const library = ::dlopen("libm.so.6", RTLD_NOW);
         if (library == nullptr) return text({"not opened"});
         double (*const cosine)(double) = reinterpret_cast<double (*)(double)>(::dlsym(library, "cos"));
         return text({cosine != nullptr && cosine(0) == 1, ::dlclose(library)});
       });
     }},
    {"dlerror of threads",
     [] {
       const std::string other = elsewhere([] {
         const bool opened = ::dlopen("no-such-library", RTLD_NOW) != nullptr;
         pauseMs(1);
         return text({opened, ::dlerror() != nullptr, ::dlerror() == nullptr});
       });
       return text({other, ::dlerror() == nullptr});
     }},
    {"a context within a thread",
     [] {
       return text({runMany(4, [](int i) {
         ucontext_t inner, outer;
         std::vector<char> stack(64 * 1024);
         ::getcontext(&inner);
         inner.uc_stack.ss_sp = stack.data();
         inner.uc_stack.ss_size = stack.size();
         inner.uc_link = &outer;
         t_zero = i;
         ::makecontext(
             &inner,
             [] {
               pauseMs(1);
               t_zero += 100;
             },
             0);
         ::swapcontext(&outer, &inner);
         return t_zero == i + 100 ? 1 : 0;
       })});
     }},
    {"a wait within a context",
     [] {
       const Pipe pipe;
       const pthread_t other = start([&pipe] {
         pauseMs(kShortMs);
         pipe.put('c');
       });
       const std::string seen = elsewhere([&pipe] {
         char got = '-';
         sylar::test::inCoroutine([&] { got = pipe.get(); });
         return got == 'c';
       });
       return text({seen, joined(other)});
     }},
    {"main waits within a context",
     [] {
       const Pipe pipe;
       const pthread_t other = start([&pipe] {
         pauseMs(kShortMs);
         pipe.put('c');
       });
       char got = '-';
       sylar::test::inCoroutine([&] { got = pipe.get(); });
       return text({got == 'c', joined(other)});
     }},
    {"a thread spins within a context until another sets a flag",
     [] {
       std::atomic<bool> flag{false};
       return text({runMany(2, [&](int i) {
         if (i == 1) flag = true;
         sylar::test::inCoroutine([&] {
           while (!flag) {
           }
         });
         return 1;
       })});
     }},
    {"asynchronous input",
     [] {
       return elsewhere([] {
         const Pipe pipe;
         char byte = '-';
         aiocb request{};
         request.aio_fildes = pipe.output();
         request.aio_buf = &byte;
         request.aio_nbytes = 1;
         const int asked = ::aio_read(&request);
         pipe.put('y');
         const aiocb* const requests[] = {&request};
         while (::aio_error(&request) == EINPROGRESS) ::aio_suspend(requests, 1, nullptr);
         return text({asked, ::aio_return(&request), byte == 'y'});
       });
     }},
};

// ---- Programs of their own that cases start ----------------------------------------------------------------------------------

void puts(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

/// Prints its name when it is destroyed.
struct Prints {
  ~Prints() { puts(name); }
  const char* name;
};

/// Runs `run` in a thread, for which main waits without an end.
template <class Run>
int waitFor(Run run) {
  std::atexit([] { puts("at exit"); });
  start(run);
  for (;;) ::pause();
}

struct Part {
  const char* name;
  int (*run)();
};

const Part kParts[] = {
    {"overflow",
     [] {
       const rlimit none{};
       ::setrlimit(RLIMIT_CORE, &none);
       return waitFor([] { return recursion(1 << 20); });
     }},
    {"thread_locals of main",
     [] {
       thread_local Prints variable{"variable of main"};
       static Prints object{"static"};
       start([] { variable.name = "variable of the thread"; });
       pauseMs(20);
       return variable.name == object.name ? 1 : 0;
     }},
    {"keys at exit",
     [] {
       ::pthread_key_create(&g_key, [](void*) { puts("destroyed"); });
       ::pthread_setspecific(g_key, &g_key);
       joined(start([] { ::pthread_setspecific(g_key, &g_key); }));
       return 3;
     }},
    {"keys at pthread_exit",
     []() -> int {
       ::pthread_key_create(&g_key, [](void*) { puts("destroyed"); });
       ::pthread_setspecific(g_key, &g_key);
       const Prints frame{"unwound"};
       ::pthread_exit(nullptr);
     }},
    {"main leaves",
     []() -> int {
       std::atexit([] { puts("at exit"); });
       static Semaphore go;
       startMany(3, [](int) {
         go.wait();
         puts("thread");
         go.post();
       });
       const struct LetsGo {  // when main has been unwound
         ~LetsGo() { go.post(); }
       } lets_go;
       const Prints frame{"unwound"};
       ::pthread_exit(nullptr);
     }},
    {"main leaves, a thread exits",
     []() -> int {
       std::atexit([] { puts("at exit"); });
       static const pthread_t main = ::pthread_self();
       start([] {
         ::pthread_join(main, nullptr);
         std::exit(9);
       });
       ::pthread_exit(nullptr);
     }},
    {"main is joined",
     []() -> int {
       static const pthread_t main = ::pthread_self();
       start([] { puts(joined(main).c_str()); });
       ::pthread_exit(value(21));
     }},
    {"main returns",
     [] {
       std::atexit([] { puts("at exit"); });
       startMany(3, [](int) { ::pause(); });
       pauseMs(kShortMs);
       return 4;
     }},
    {"exit",
     [] {
       return waitFor([] {
         const Prints frame{"unwound"};
         std::exit(7);
       });
     }},
    {"quick_exit",
     [] {
       std::at_quick_exit([] { puts("at quick exit"); });
       return waitFor([] { std::quick_exit(8); });
     }},
    {"_exit", [] { return waitFor([] { ::_exit(6); }); }},
    {"abort",
     [] {
       const rlimit none{};
       ::setrlimit(RLIMIT_CORE, &none);
       return waitFor([] { std::abort(); });
     }},
    {"throw",
     [] {
       const rlimit none{};
       ::setrlimit(RLIMIT_CORE, &none);
       std::set_terminate([] {
         puts("terminate");
         std::abort();
       });
       return waitFor([] { throw std::runtime_error("out of a thread"); });
     }},
    {"execute", [] { return waitFor([] { ::execlp("sh", "sh", "-c", "echo executed; exit 5", nullptr); }); }},
    {"fault",
     [] {
       const rlimit none{};
       ::setrlimit(RLIMIT_CORE, &none);
       return waitFor([] { *static_cast<volatile int*>(nullptr) = 1; });
     }},
    {"killed", [] { return waitFor([] { ::kill(::getpid(), SIGTERM); }); }},
};

int runPart(std::string_view name) {
  for (const Part& part : kParts) {
    if (name == part.name) return part.run();
  }
  return 125;
}

/// The number of kernel threads beside that of `threads` that live, once those that only start and end others have gone.
int countTasks(int threads) {
  Semaphore ready, go;
  const std::vector<pthread_t> live = startMany(threads, [&](int) {
    ready.post();
    go.wait();
  });
  ready.wait(threads);
  int fewest = kernelThreads();
  for (int i = 0; i < 20; ++i) {
    pauseMs(10);
    fewest = std::min(fewest, kernelThreads());
  }
  for (int i = 0; i < threads; ++i) go.post();
  for (const pthread_t thread : live) joined(thread);
  return fewest;
}

// ---- The program -------------------------------------------------------------------------------------------------------------

std::vector<Case> allCases() {
  std::vector<Case> cases;
  const auto add = [&](const auto& some) { cases.insert(cases.end(), std::begin(some), std::end(some)); };
  add(kCreation);
  add(kAttributes);
  add(kVariables);
  add(kKeys);
  add(kOnce);
  add(kEnds);
  add(kMutexes);
  add(kConditions);
  add(kReadWriteLocks);
  add(kSpinLocksAndBarriers);
  add(kSemaphores);
  add(kCThreads);
  add(kCppThreads);
  add(kPrograms);
  add(kJoinsAndNames);
  add(kSignals);
  add(kCancellation);
  add(kProcesses);
  add(kRest);
  return cases;
}

void run(const Case& each) {
  said();
  std::string seen;
  try {
    seen = each.run();
  } catch (const std::exception& failure) {
    seen = std::string("threw ") + failure.what();
  }
  std::printf("%s: %s\n", each.name, seen.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  g_program = std::filesystem::read_symlink("/proc/self/exe");
  if (arguments.size() == 2 && arguments[0] == "--part") return runPart(arguments[1]);
  if (arguments.size() == 2 && arguments[0] == "--tasks") {
    std::printf("%d\n", countTasks(std::stoi(std::string(arguments[1]))));
    return 0;
  }
  const bool list = arguments.size() == 1 && arguments[0] == "--list";
  size_t found = 0;
  for (const Case& each : allCases()) {
    const bool wanted = list || arguments.empty() || std::find(arguments.begin(), arguments.end(), each.name) != arguments.end();
    if (!wanted) continue;
    ++found;
    if (list) std::puts(each.name);
    if (!list) run(each);
  }
  return found < arguments.size() && !list ? 1 : 0;
}
