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
  for (const Word& word : words) line += (line.empty() ? "" : " ") + word.text;
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
       return text({::pthread_equal(main, ::pthread_self()) != 0, elsewhere([&] { return ::pthread_equal(main, ::pthread_self()); })});
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
             seen = text({stack.size, stack.holds, stack.detached == PTHREAD_CREATE_JOINABLE});
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
       return text({elsewhere([size] { return Stack().size == size; }), elsewhere([] { return Stack().holds; })});
     }},
    {"another default stack",
     [] {
       pthread_attr_t before;
       ::pthread_getattr_default_np(&before);
       Attributes attributes;
       must(::pthread_attr_setstacksize(attributes.get(), 3 << 20));
       const int set = ::pthread_setattr_default_np(attributes.get());
       const std::string size = elsewhere([] { return Stack().size; });
       ::pthread_setattr_default_np(&before);
       ::pthread_attr_destroy(&before);
       return text({error(set), size});
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
       must(::pthread_attr_setstacksize(attributes.get(), PTHREAD_STACK_MIN));
       pthread_t thread{};
       must(::pthread_create(&thread, attributes.get(), returnsArgument, value(3)));
       return joined(thread);
     }},
    {"a small stack waits",
     [] {
       Attributes attributes;
       must(::pthread_attr_setstacksize(attributes.get(), PTHREAD_STACK_MIN + 16 * 1024));
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
       return text({joined(start([] { return recursion(6 << 10); })), joined(start([] { return recursion(24 << 10); }, attributes.get()))});
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
thread_local std::array<char, 64 * 1024> t_large;

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
    {"constructors and destructors of a thread_local", [] { return text({countKept(10, true), countKept(10, false)}); }},
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
         seen = text({runMany(10, [](int i) {
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
       return withKey(countDestroyed, [] {
         runMany(10, [](int i) { return ::pthread_setspecific(g_key, value(i % 2)); });
       });
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
      : m_shared(new(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared()) {}
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
       return text({error(lockUntil(mutex, timeIn(kLongMs))), error(::pthread_mutex_consistent(mutex.get())), error(mutex.unlock())});
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
    {"turns by timed waits", [] { return text({turns(Form::kTimed), turns(Form::kTimed, CLOCK_MONOTONIC)}); }},
    {"turns by waits with a clock",
     [] {
       return text({turns(Form::kClock), turns(Form::kClock, CLOCK_MONOTONIC)});
     }},
    {"a timed wait expires",
     [] {
       return text({expired(Form::kTimed, kShortMs), expired(Form::kTimed, -1000), expired(Form::kTimed, kShortMs, CLOCK_MONOTONIC)});
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
       const std::string seen = text({clock == CLOCK_REALTIME, error(::pthread_condattr_setclock(&attributes, CLOCK_PROCESS_CPUTIME_ID))});
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
       return text({error(lock.read()), error(lock.write()), error(lock.tryRead()), error(lock.tryWrite()), error(lock.unlock())});
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
     [] {
       return withMtx(mtx_plain, [] { return counted([] { ::mtx_lock(&g_mtx); }, [] { ::mtx_unlock(&g_mtx); }); });
     }},
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
         return text({runMany(2, [](int mine) {
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

