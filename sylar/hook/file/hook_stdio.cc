// Stdio on pipes, sockets and terminals. Source: fgets(3), fread(3), getline(3), scanf(3), puts(3), printf(3), fflush(3),
// flockfile(3).
//
// A read for which the stream has not read enough ahead waits for more as poll does. Then a helper thread makes it, because libc
// may need more than one read and makes them by itself.
//
// A write for which the stream's buffer has no room waits until the descriptor takes something. Then it is made in place if it is
// at most what a pipe takes at once, and otherwise by a helper thread.
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio_ext.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/probe.h"
#include "sylar/hook/core/real.h"
#include "sylar/hook/core/thread_record.h"
#include "sylar/hook/core/wait_loop.h"
#include "sylar/hook/file/stream_memory.h"

namespace sylar::detail {
namespace {

/// How many streams the code that runs on this thread has locked by itself. A helper thread would wait for such a lock without end.
[[gnu::tls_model("initial-exec")]] constinit thread_local int t_locked = 0;

/// Orders a helper's call before a later look at the stream, for ThreadSanitizer, which does not know the lock of a stream.
constinit std::atomic<uint32_t> g_used_by_helpers{0};

/// Takes the SIGPIPE that a write has sent to this helper thread, which blocks all signals. Returns false if there is none.
bool takesSigpipe() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  constexpr timespec kNoTime{};
  return real::sigtimedwait(&set, nullptr, &kNoTime) == SIGPIPE;
}

FdKind kindOf(const FILE* file) {
  Entry* const entry = FdTable::at(file->_fileno);
  return entry == nullptr ? FdKind::kOther : attempt::kindOf(*entry, file->_fileno);
}

/// Returns true if a call on the stream, which `refuses` says that it does not take, may wait for somebody else.
bool mayWait(FILE* file, int refuses) {
  if (onThreadStack() || t_locked > 0 || (file->_flags & kOfDescriptor) == 0 || (file->_flags & refuses) != 0) return false;
  return file->_fileno >= 0 && ::fwide(file, 0) <= 0 && hookEngine() != nullptr && !isFile(kindOf(file));
}

/// Lets others run if the program makes nothing but such calls. Not to be inlined, because the fiber may have changed its thread.
[[gnu::noinline]] void charge() {
  if (EpollEngine* const engine = hookEngine()) chargeCallThatNeverWaits(*engine);
}

/// Locks the stream. The call may suspend a fiber, while a helper thread uses the stream.
void lockStream(FILE* file) {
  if (real::ftrylockfile(file) == 0) return;
  const this_fiber::CancelShield shield;
  CallWait call(EndedBy::kNone);
  bool locked = false;
  const auto lock = [&] {
    locked = real::ftrylockfile(file) == 0;
    return locked || !maySuspendHere() ? 0L : -EAGAIN;
  };
  call.askAgain(lock, Deadline::never(), Pauses(std::chrono::microseconds(50), std::chrono::milliseconds(10)));
  if (!locked) real::flockfile(file);
}

/// Has a helper thread make a call on the stream, as if it were made here.
template <class Call>
auto byHelper(FILE* file, BlockingPool::Length length, Call call) -> decltype(call()) {
  const locale_t locale = ::uselocale(nullptr);
  bool pipe_broke = false;
  const auto result = offload(
      [&] {
        const locale_t before = ::uselocale(locale);
        real::flockfile(file);  // the call's own lock, which nests
        const auto made = call();
        g_used_by_helpers.fetch_add(1, std::memory_order_release);
        real::funlockfile(file);
        ::uselocale(before);
        const int error = sys::errnoRef();
        pipe_broke = takesSigpipe();
        sys::errnoRef() = error;
        return made;
      },
      length);
  if (!pipe_broke) return result;
  const int error = sys::errnoRef();
  ::raise(SIGPIPE);
  sys::errnoRef() = error;
  return result;
}

/// Fails a call because its wait has ended with -`error`. Sets the stream's error mark, for which libc has no function.
template <class Result>
Result fails(FILE* file, long error, Result failed) {
  if (real::ftrylockfile(file) == 0) {  // else another call is under way
    file->_flags |= kErrorSeen;
    real::funlockfile(file);
  }
  sys::errnoRef() = static_cast<int>(-error);
  return failed;
}

/// Where a call is to be made.
enum class Where { kHere, kHelper, kLater };

/// Says where, as far as the stream's own memory tells: later, if it lacks something for certain.
template <class Needs>
Where whereFor(FILE* file, Needs needs) {
  if (real::ftrylockfile(file) != 0) return Where::kHelper;  // another call is under way, and may leave something
  g_used_by_helpers.load(std::memory_order_acquire);
  const Where where = ::feof_unlocked(file) != 0 ? Where::kHere : needs(Buffered(file));
  real::funlockfile(file);
  return where;
}

/// Writes what libc would write before it waits for input: what the stream itself has, and the prompt.
void flushBeforeInput(FILE* file) {
  if (::__fpending(file) > 0) ::fflush(file);
  const bool asks = kindOf(file) == FdKind::kTerminal || (file->_flags & (kUnbuffered | kLineBuffered)) != 0;
  if (asks && (stdout->_flags & kLineBuffered) != 0 && ::__fpending(stdout) > 0) ::fflush(stdout);
}

/// Makes `call`, which reads from the stream, here if it need not wait. `needs` says that of what the stream has read ahead.
/// Returns `failed` if the wait has failed.
template <class Needs, class Call>
auto reading(FILE* file, Needs needs, decltype(std::declval<Call>()()) failed, Call call) -> decltype(call()) {
  if (!mayWait(file, kNoReads)) return call();
  Where where = whereFor(file, needs);
  if (where == Where::kLater) {
    flushBeforeInput(file);
    IoCall wait(file->_fileno, Direction::kRead);
    if (!wait.parks()) return call();
    // Others read from the stream as well. What they took from the descriptor before the second question is in its memory.
    const long ready = wait.run([&]() -> long {
      const bool found =
          whereFor(file, needs) != Where::kLater || probe::isReady(wait.fd(), POLLIN) || whereFor(file, needs) != Where::kLater;
      return found ? 1 : -EAGAIN;
    });
    if (wait.mustUseLibc(ready)) return call();
    if (ready < 0) return fails(file, ready, failed);
    where = whereFor(file, needs);
  }
  charge();
  return where == Where::kHere ? call() : byHelper(file, BlockingPool::Length::kOwn, call);
}

// ---- Writes. -----------------------------------------------------------------------------------------------------------------

/// Returns the size of the stream's buffer, which it gets with its first byte. Source: glibc, libio/filedoalloc.c.
size_t bufferSize(const FILE* file) {
  if (file->_IO_buf_base != nullptr) return static_cast<size_t>(file->_IO_buf_end - file->_IO_buf_base);
  struct stat status;
  const bool known = ::fstat(file->_fileno, &status) == 0 && status.st_blksize > 0 && status.st_blksize < BUFSIZ;
  return static_cast<size_t>(known ? status.st_blksize : BUFSIZ);
}

/// Says where a call that adds `bytes` to the stream, or flushes it, is to be made. The caller has locked the stream. Source:
/// glibc, libio/fileops.c.
Where whereToWrite(FILE* file, size_t bytes, bool flushes) {
  const int fd = file->_fileno;
  const size_t pending = ::__fpending(file);
  const size_t size = bufferSize(file);
  constexpr size_t kLeastBlock = 128;  // a smaller buffer is not filled first
  const bool is_terminal = kindOf(file) == FdKind::kTerminal;
  const bool by_blocks = !is_terminal && (file->_flags & (kUnbuffered | kLineBuffered)) == 0 && size >= kLeastBlock;
  const bool has_read =
      (file->_flags & kIsWriting) == 0 && file->_IO_read_end != file->_IO_buf_base;  // part of the buffer may be taken
  const size_t written = flushes ? pending : by_blocks && !has_read ? (pending + bytes) / size * size : pending + bytes;
  const bool fills_it =
      (file->_flags & kIsWriting) != 0 && !flushes && by_blocks && pending + bytes == size;  // and flushes it later
  if (written == 0 || fills_it || (bytes == 0 && !flushes)) return Where::kHere;
  if (probe::isReady(fd, 0)) return Where::kHere;  // it fails at once
  if (!probe::isReady(fd, POLLOUT)) return Where::kLater;
  return !is_terminal && written <= PIPE_BUF ? Where::kHere
                                             : Where::kHelper;  // a terminal may take less than poll makes one think
}

/// Makes `call`, which adds `size()` bytes to the stream or flushes it, here if it need not wait. Returns `failed` if the wait has
/// failed.
template <class Size, class Call>
auto writing(FILE* file, Size size, decltype(std::declval<Call>()()) failed, Call call, bool flushes = false)
    -> decltype(call()) {
  if (!mayWait(file, kNoWrites)) return call();
  const size_t bytes = size();
  for (;;) {
    charge();
    lockStream(file);
    const Where where = whereToWrite(file, bytes, flushes);
    if (where == Where::kHere) {
      const auto result = call();
      real::funlockfile(file);
      return result;
    }
    real::funlockfile(file);
    if (where == Where::kHelper) return byHelper(file, BlockingPool::Length::kOthers, call);
    IoCall wait(file->_fileno, Direction::kWrite);
    if (!wait.parks()) return call();
    const long ready = wait.run([&]() -> long { return probe::isReady(wait.fd(), POLLOUT) ? 1 : -EAGAIN; });
    if (wait.mustUseLibc(ready) || ready == -EPIPE) return call();  // the latter fails again, and raises SIGPIPE
    if (ready < 0) return fails(file, ready, failed);
  }
}

/// Returns how much a printf(3) writes. `flag` is that of the fortified forms, else 0.
size_t sizeOf(int flag, const char* format, va_list from) {
  va_list copy;
  va_copy(copy, from);
  const int size = ::__vsnprintf_chk(nullptr, 0, flag, SIZE_MAX, format, copy);
  va_end(copy);
  return static_cast<size_t>(std::max(size, 0));
}

Where hereIf(bool suffices) { return suffices ? Where::kHere : Where::kLater; }

/// For calls of which nobody knows how much they need.
constexpr auto kNeedsSomething = [](const Buffered& buffered) { return buffered.size() > 0 ? Where::kHelper : Where::kLater; };

}  // namespace
}  // namespace sylar::detail

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
  FILE* const file = stdout;  // which may be another one after a wait
  const auto put = [=] {
    real::flockfile(file);
    const int result = real::fputs(text, file) == EOF || real::fputc('\n', file) == EOF ? EOF : 1;
    real::funlockfile(file);
    return result;
  };
  return writing(
      file, [=] { return std::strlen(text) + 1; }, EOF, put);
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

// A flush of all streams is left to libc, which locks one after the other.
int fflush(FILE* file) {
  countCall(Hook::fflush);
  if (file == nullptr) return real::fflush(nullptr);
  return writing(
      file, [] { return size_t{0}; }, EOF, [=] { return real::fflush(file); }, true);
}

int vfprintf(FILE* file, const char* format, va_list from) {
  countCall(Hook::vfprintf);
  return writing(
      file, [&] { return sizeOf(0, format, from); }, -1, [&] { return real::vfprintf(file, format, from); });
}
int hookedVprintf(const char* format, va_list from) { return vfprintf(stdout, format, from); }
int fprintf(FILE* file, const char* format, ...) { SYLAR_FORWARD_(format, vfprintf(file, format, arguments)) }
int printf(const char* format, ...) { SYLAR_FORWARD_(format, vfprintf(stdout, format, arguments)) }
// Fortified programs call these.
int __vfprintf_chk(FILE* file, int flag, const char* format, va_list from) {
  countCall(Hook::__vfprintf_chk);
  return writing(
      file, [&] { return sizeOf(flag, format, from); }, -1, [&] { return real::__vfprintf_chk(file, flag, format, from); });
}
int __vprintf_chk(int flag, const char* format, va_list from) { return __vfprintf_chk(stdout, flag, format, from); }
int __fprintf_chk(FILE* file, int flag, const char* format, ...) {
  SYLAR_FORWARD_(format, __vfprintf_chk(file, flag, format, arguments))
}
int __printf_chk(int flag, const char* format, ...) { SYLAR_FORWARD_(format, __vfprintf_chk(stdout, flag, format, arguments)) }

// Fibers wait for helper threads here, and threads that are fibers for one another. Other fibers are one and the same thread to
// libc.
void flockfile(FILE* file) noexcept {
  const NoCancellationPoint whole;
  lockStream(file);
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
