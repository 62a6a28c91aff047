// Stdio on pipes, sockets and terminals. Source: fgets(3), fread(3), getline(3), scanf(3), puts(3), printf(3), fflush(3), flockfile(3).
//
// A read for which the stream has not read enough ahead waits for more as poll does. Then a helper thread makes it, because libc may need
// more than one read and makes them by itself.
//
// A write for which the stream's buffer has no room waits until the descriptor takes something. Then it is made in place if a pipe takes it
// at once, and by a helper thread if it is longer.
#include <limits.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "sylar/hook/descriptor_wait.h"
#include "sylar/hook/offload.h"
#include "sylar/hook/probe.h"
#include "sylar/hook/real.h"
#include "sylar/hook/thread_record.h"

namespace sylar {
namespace {

/// How many streams the code that runs on this thread has locked by itself. A helper thread would wait for such a lock without end.
[[gnu::tls_model("initial-exec")]] constinit thread_local int t_locked = 0;

bool isFiberThread() {
#ifdef SYLAR_THREAD_POINTER
  return FiberThread::mine().isFiber() && hookSleeps();
#else
  return false;
#endif
}

/// Orders a helper's call before a later look at the stream, for ThreadSanitizer, which does not know the lock of a stream.
constinit std::atomic<uint32_t> g_read_by_helpers{0};

/// Returns true if a call on the stream may wait for somebody else.
bool mayWait(FILE* file) {
  if (onThreadStack() || t_locked > 0 || file->_fileno < 0 || ::fwide(file, 0) > 0) return false;
  EpollEngine* const engine = hookEngine();
  if (engine == nullptr) return false;
  engine->chargeCall();
  yieldIfBudgetIsSpent(*engine);
  Entry* const entry = FdTable::at(file->_fileno);
  return entry != nullptr && attempt::kindOf(*entry, file->_fileno) != FdKind::kOther;
}

/// What a stream has read ahead. While it gives what ungetc() has pushed back, the rest is in its saved area.
class Buffered {
 public:
  explicit Buffered(const FILE* file) : m_parts{part(file->_IO_read_ptr, file->_IO_read_end), {}} {
    constexpr int kInBackup = 0x100;
    if ((file->_flags & kInBackup) != 0) m_parts[1] = part(file->_IO_save_base, file->_IO_save_end);
  }
  size_t size() const { return m_parts[0].size() + m_parts[1].size(); }
  bool has(char byte) const {
    return m_parts[0].find(byte) != std::string_view::npos || m_parts[1].find(byte) != std::string_view::npos;
  }

 private:
  static std::string_view part(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }
  std::string_view m_parts[2];
};

/// Where a call is to be made.
enum class Where { kHere, kHelper, kLater };

/// Says where, as far as the stream's own memory tells: later, if it lacks something for certain.
template <class Needs>
Where whereFor(FILE* file, Needs needs) {
  if (real::ftrylockfile(file) != 0) return Where::kHelper;  // another call is under way, and may leave something
  g_read_by_helpers.load(std::memory_order_acquire);
  const Where where = ::feof_unlocked(file) != 0 ? Where::kHere : needs(Buffered(file));
  real::funlockfile(file);
  return where;
}

/// Waits for an event of the stream's descriptor, until `look` returns true. Returns false and sets errno and the stream's error mark if
/// that fails.
template <class Look>
bool awaitEvent(FILE* file, short event, Look look) {
  const pollfd one{file->_fileno, event, 0};
  Interruptible call(EndedBy::kNoRestart);
  const auto [error, until] = untilReady(kNever);
  int found = -error;
  if (error == 0) {
    DescriptorWait wait(&one, 1, *hookEngine(), call);
    found = wait.run(until, [&] { return look() ? 1 : 0; });
  }
  if (found > 0 || found == DescriptorWait::kPassOn) return true;
  constexpr int kErrorSeen = 0x20;  // what ferror() reports; libc has no function that sets it
  file->_flags |= kErrorSeen;
  sys::errnoRef() = found == 0 ? ETIMEDOUT : -found;
  return false;
}

/// Makes `call`, which reads from the stream, here if it need not wait. `needs` says that of what the stream has read ahead. Returns
/// `failed` if the wait has failed.
template <class Needs, class Call>
auto reading(FILE* file, Needs needs, decltype(std::declval<Call>()()) failed, Call call) -> decltype(call()) {
  if (!mayWait(file)) return call();
  Where where = whereFor(file, needs);
  if (where != Where::kHere && probe::isNonblocking(file->_fileno)) return call();
  if (where == Where::kLater) {
    // Others read from the stream as well. What they took from the descriptor before the second question is in its memory.
    const auto look = [&] {
      return whereFor(file, needs) != Where::kLater || probe::isReady(file->_fileno, POLLIN) ||
             whereFor(file, needs) != Where::kLater;
    };
    if (!awaitEvent(file, POLLIN, look)) return failed;
    where = whereFor(file, needs);
  }
  if (where == Where::kHere) return call();
  return offload([&] {
    real::flockfile(file);  // the call's own lock, which nests
    const auto result = call();
    g_read_by_helpers.fetch_add(1, std::memory_order_release);
    real::funlockfile(file);
    return result;
  });
}

// ---- Writes. -----------------------------------------------------------------------------------------------------------------

/// Returns how much a stream with a buffer of its own takes before it writes. It gets the buffer with its first byte. Source: glibc,
/// libio/filedoalloc.c and fileops.c.
size_t roomOf(const FILE* file) {
  constexpr int kIsWriting = 0x800;
  if ((file->_flags & kIsWriting) != 0) return static_cast<size_t>(file->_IO_write_end - file->_IO_write_ptr);
  if (file->_IO_buf_base != nullptr) return static_cast<size_t>(file->_IO_buf_end - file->_IO_buf_base) - 1;
  struct stat status;
  const bool known = ::fstat(file->_fileno, &status) == 0 && status.st_blksize > 0 && status.st_blksize < BUFSIZ;
  return static_cast<size_t>(known ? status.st_blksize : BUFSIZ) - 1;
}

/// Says where a call that adds `bytes` to the stream, or flushes it, is to be made. For whoever has locked the stream.
Where whereToWrite(FILE* file, size_t bytes, bool flushes) {
  constexpr int kUnbuffered = 2, kLineBuffered = 0x200;
  const int fd = file->_fileno;
  const bool is_terminal = attempt::kindOf(*FdTable::at(fd), fd) == FdKind::kTerminal;
  const bool writes_at_once = is_terminal || (file->_flags & (kUnbuffered | kLineBuffered)) != 0;
  const size_t pending = ::__fpending(file);
  if (flushes ? pending == 0 : !writes_at_once && bytes <= roomOf(file)) return Where::kHere;
  if (!probe::isReady(fd, POLLOUT)) return Where::kLater;
  const bool taken_at_once = !is_terminal && pending + bytes <= PIPE_BUF;  // a terminal may take less than poll makes one think
  return taken_at_once ? Where::kHere : Where::kHelper;
}

/// Makes `call`, which adds `size()` bytes to the stream or flushes it, here if it need not wait. Returns `failed` if the wait has failed.
template <class Size, class Call>
auto writing(FILE* file, Size size, decltype(std::declval<Call>()()) failed, Call call, bool flushes = false)
    -> decltype(call()) {
  if (!mayWait(file)) return call();
  const size_t bytes = size();
  while (real::ftrylockfile(file) == 0) {
    Where where = whereToWrite(file, bytes, flushes);
    if (where != Where::kHere && probe::isNonblocking(file->_fileno)) where = Where::kHere;
    if (where == Where::kHere) {
      const auto result = call();
      real::funlockfile(file);
      return result;
    }
    real::funlockfile(file);
    if (where == Where::kHelper) break;
    const int fd = file->_fileno;
    if (!awaitEvent(file, POLLOUT, [fd] { return probe::isReady(fd, POLLOUT); })) return failed;
  }
  return offload(call, BlockingPool::Length::kOthers);  // another call may be under way
}

/// Returns what printf(3) would write.
size_t sizeOf(const char* format, va_list from) {
  va_list copy;
  va_copy(copy, from);
  const int size = ::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  return static_cast<size_t>(std::max(size, 0));
}

Where hereIf(bool suffices) { return suffices ? Where::kHere : Where::kLater; }

/// For calls of which nobody knows how much they need.
constexpr auto kNeedsSomething = [](const Buffered& buffered) { return buffered.size() > 0 ? Where::kHelper : Where::kLater; };

}  // namespace
}  // namespace sylar

using namespace sylar;  // NOLINT: the names below are libc's

extern "C" {

[[noreturn]] void __chk_fail();
// These cannot be defined by their names: libc's header has some inline, and gives others of these names to all of them.
int hookedGetchar() __asm__("getchar");
int hookedPutchar(int byte) __asm__("putchar");
int hookedVprintf(const char* format, va_list from) __asm__("vprintf");
ssize_t hookedGetline(char** line, size_t* size, FILE* file) __asm__("getline");
int hookedVfscanf(FILE* file, const char* format, va_list to) __asm__("vfscanf");
int hookedVscanf(const char* format, va_list to) __asm__("vscanf");
int hookedFscanf(FILE* file, const char* format, ...) __asm__("fscanf");
int hookedScanf(const char* format, ...) __asm__("scanf");
int hookedC99Vfscanf(FILE* file, const char* format, va_list to) __asm__("__isoc99_vfscanf");
int hookedC99Vscanf(const char* format, va_list to) __asm__("__isoc99_vscanf");
int hookedC99Fscanf(FILE* file, const char* format, ...) __asm__("__isoc99_fscanf");
int hookedC99Scanf(const char* format, ...) __asm__("__isoc99_scanf");

char* fgets(char* line, int size, FILE* file) {
  countCall(Hook::fgets);
  const size_t most = size > 0 ? static_cast<size_t>(size) - 1 : 0;
  const auto needs = [most](const Buffered& buffered) { return hereIf(buffered.size() >= most || buffered.has('\n')); };
  return reading(file, needs, nullptr, [=] { return real::fgets(line, size, file); });
}
char* __fgets_chk(char* line, size_t line_size, int size, FILE* file) {
  if (size > 0 && static_cast<size_t>(size) > line_size) __chk_fail();
  return fgets(line, size, file);
}

int fgetc(FILE* file) {
  countCall(Hook::fgetc);
  const auto needs = [](const Buffered& buffered) { return hereIf(buffered.size() > 0); };
  return reading(file, needs, EOF, [=] { return real::fgetc(file); });
}
int getc(FILE* file) { return fgetc(file); }
int _IO_getc(FILE* file) { return fgetc(file); }
int hookedGetchar() { return fgetc(stdin); }

size_t fread(void* to, size_t size, size_t count, FILE* file) {
  countCall(Hook::fread);
  size_t bytes = 0;
  const bool is_huge = __builtin_mul_overflow(size, count, &bytes);
  const auto needs = [=](const Buffered& buffered) { return hereIf(!is_huge && buffered.size() >= bytes); };
  return reading(file, needs, size_t{0}, [=] { return real::fread(to, size, count, file); });
}
size_t __fread_chk(void* to, size_t to_size, size_t size, size_t count, FILE* file) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes > to_size) __chk_fail();
  return fread(to, size, count, file);
}

ssize_t getdelim(char** line, size_t* size, int delimiter, FILE* file) {
  countCall(Hook::getdelim);
  const auto needs = [delimiter](const Buffered& buffered) { return hereIf(buffered.has(static_cast<char>(delimiter))); };
  return reading(file, needs, ssize_t{-1}, [=] { return real::getdelim(line, size, delimiter, file); });
}
ssize_t __getdelim(char** line, size_t* size, int delimiter, FILE* file) { return getdelim(line, size, delimiter, file); }
ssize_t hookedGetline(char** line, size_t* size, FILE* file) { return getdelim(line, size, '\n', file); }

/// The body of a function with arguments behind `format`: makes `call`, which uses them as the va_list `arguments`.
#define SYLAR_FORWARD_(format, call) \
  va_list arguments;                 \
  va_start(arguments, format);       \
  const int result = call;           \
  va_end(arguments);                 \
  return result;

// The header makes the names of C99 of these, and programs in older C call the others. The two read `%a` in different ways.
#define SYLAR_SCANS_(prefix, name)                                                                                             \
  int prefix##Vfscanf(FILE* file, const char* format, va_list to) {                                                            \
    countCall(Hook::name);                                                                                                     \
    return reading(file, kNeedsSomething, EOF, [&] { return real::name(file, format, to); });                                  \
  }                                                                                                                            \
  int prefix##Vscanf(const char* format, va_list to) { return prefix##Vfscanf(stdin, format, to); }                            \
  int prefix##Fscanf(FILE* file, const char* format, ...) { SYLAR_FORWARD_(format, prefix##Vfscanf(file, format, arguments)) } \
  int prefix##Scanf(const char* format, ...) { SYLAR_FORWARD_(format, prefix##Vfscanf(stdin, format, arguments)) }
SYLAR_SCANS_(hooked, vfscanf)
SYLAR_SCANS_(hookedC99, __isoc99_vfscanf)
#undef SYLAR_SCANS_

int fputs(const char* text, FILE* file) {
  countCall(Hook::fputs);
  return writing(
      file, [=] { return std::strlen(text); }, EOF, [=] { return real::fputs(text, file); });
}
int puts(const char* text) {
  countCall(Hook::puts);
  return writing(
      stdout, [=] { return std::strlen(text) + 1; }, EOF, [=] { return real::puts(text); });
}

int fputc(int byte, FILE* file) {
  countCall(Hook::fputc);
  return writing(
      file, [] { return size_t{1}; }, EOF, [=] { return real::fputc(byte, file); });
}
int putc(int byte, FILE* file) { return fputc(byte, file); }
int _IO_putc(int byte, FILE* file) { return fputc(byte, file); }
int hookedPutchar(int byte) { return fputc(byte, stdout); }

size_t fwrite(const void* from, size_t size, size_t count, FILE* file) {
  countCall(Hook::fwrite);
  const auto bytes = [=] {
    size_t all = 0;
    return __builtin_mul_overflow(size, count, &all) ? SIZE_MAX / 2 : all;
  };
  return writing(file, bytes, size_t{0}, [=] { return real::fwrite(from, size, count, file); });
}

// Of all streams at once it is libc's: they are locked one after the other.
int fflush(FILE* file) {
  countCall(Hook::fflush);
  if (file == nullptr) return real::fflush(nullptr);
  return writing(
      file, [] { return size_t{0}; }, EOF, [=] { return real::fflush(file); }, true);
}

int vfprintf(FILE* file, const char* format, va_list from) {
  countCall(Hook::vfprintf);
  return writing(
      file, [&] { return sizeOf(format, from); }, -1, [&] { return real::vfprintf(file, format, from); });
}
int hookedVprintf(const char* format, va_list from) { return vfprintf(stdout, format, from); }
int fprintf(FILE* file, const char* format, ...) { SYLAR_FORWARD_(format, vfprintf(file, format, arguments)) }
int printf(const char* format, ...) { SYLAR_FORWARD_(format, vfprintf(stdout, format, arguments)) }
// What fortified programs call.
int __vfprintf_chk(FILE* file, int flag, const char* format, va_list from) {
  countCall(Hook::__vfprintf_chk);
  return writing(
      file, [&] { return sizeOf(format, from); }, -1, [&] { return real::__vfprintf_chk(file, flag, format, from); });
}
int __vprintf_chk(int flag, const char* format, va_list from) { return __vfprintf_chk(stdout, flag, format, from); }
int __fprintf_chk(FILE* file, int flag, const char* format, ...) {
  SYLAR_FORWARD_(format, __vfprintf_chk(file, flag, format, arguments))
}
int __printf_chk(int flag, const char* format, ...) { SYLAR_FORWARD_(format, __vfprintf_chk(stdout, flag, format, arguments)) }

/// Threads that are fibers wait for one another here. Other fibers are one and the same thread to libc.
void flockfile(FILE* file) noexcept {
  const NoCancellationPoint whole;
  while (isFiberThread() && real::ftrylockfile(file) != 0) ::usleep(100);
  if (!isFiberThread()) real::flockfile(file);
  ++t_locked;
}
int ftrylockfile(FILE* file) noexcept {
  const int busy = real::ftrylockfile(file);
  t_locked += busy == 0;
  return busy;
}
void funlockfile(FILE* file) noexcept {
  real::funlockfile(file);
  t_locked -= t_locked > 0;
}

}  // extern "C"
