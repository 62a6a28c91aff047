#include "sylar/hook/file/slow_mounts.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>

#include "sylar/base/os_mutex.h"
#include "sylar/base/sys.h"
#include "sylar/check.h"

namespace sylar::detail {
namespace {

constexpr int kNotOpen = -1;
constexpr size_t kMost = 64;  // more of them are all there is

struct SlowMounts {
  std::atomic<size_t> count{0};
  std::array<std::atomic<uint64_t>, kMost> mounts{};  // device << 2 | kind
};

constinit OsMutex g_mutex;
constinit std::atomic<int> g_list{kNotOpen};  // the descriptor, or -errno of an error that lasts
constinit std::array<SlowMounts, 2> g_read;   // what was read last, and where it is read to next
constinit std::atomic<const SlowMounts*> g_slow{g_read.data()};

/// Removes and returns the text up to the next `end`.
std::string_view take(std::string_view& text, std::string_view end) {
  const size_t at = text.find(end);
  const std::string_view first = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  return first;
}

unsigned numberIn(std::string_view digits) {
  unsigned number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

SlowKind kindOf(std::string_view type) {
  constexpr std::string_view kNetwork[] = {"9p",    "afs", "autofs", "ceph", "cifs", "coda",
                                           "ncpfs", "nfs", "nfs4",   "smb3", "smbfs"};
  constexpr std::string_view kFuse[] = {"fuse", "fuseblk", "virtiofs"};
  if (std::ranges::find(kNetwork, type) != std::end(kNetwork)) return SlowKind::kNetwork;
  return std::ranges::find(kFuse, type) != std::end(kFuse) || type.starts_with("fuse.") ? SlowKind::kFuse : SlowKind::kNone;
}

void note(std::string_view line, SlowMounts& to, size_t& count) {
  const auto [device, kind] = slowMountOf(line);
  if (kind == SlowKind::kNone || count > kMost) return;
  if (count < kMost) to.mounts[count].store(uint64_t{device} << 2 | static_cast<uint64_t>(kind), std::memory_order_relaxed);
  ++count;
}

/// Reads the list again, while others go by what was read before. Of a line that is longer than a page, the end with the mount's
/// own options is cut off.
void readList(int list) SYLAR_REQUIRES(g_mutex) {
  static char s_piece[4096], s_line[4096];
  SlowMounts& to = g_read[g_slow.load(std::memory_order_relaxed) == g_read.data() ? 1 : 0];
  size_t size = 0, count = 0;
  sys::call(SYS_lseek, list, 0, SEEK_SET);
  for (long n; (n = sys::call(SYS_read, list, s_piece, sizeof s_piece)) > 0;) {
    for (const char* at = s_piece; at != s_piece + n; ++at) {
      if (*at == '\n') {
        note({s_line, size}, to, count);
        size = 0;
      } else if (size < sizeof s_line) {
        s_line[size++] = *at;
      }
    }
  }
  to.count.store(count, std::memory_order_relaxed);
  g_slow.store(&to, std::memory_order_release);
}

/// Returns true if opening the list will never be possible, so that it need not be tried again.
bool lasts(int error) { return error == -ENOENT || error == -EACCES || error == -EPERM; }

}  // namespace

SlowMount slowMountOf(std::string_view line) {
  take(line, " ");  // the mount
  take(line, " ");  // its parent
  std::string_view device = take(line, " ");
  take(line, " ");  // what of the file system is mounted
  const std::string_view point = take(line, " ");
  take(line, " - ");
  const bool is_away = !point.starts_with("/proc/") && !point.starts_with("/sys/");
  const SlowKind kind = is_away ? kindOf(take(line, " ")) : SlowKind::kNone;
  const unsigned major = numberIn(take(device, ":"));
  return {::gnu_dev_makedev(major, numberIn(device)), kind};
}

bool anySlowMount() {
  SYLAR_DCHECK(!sys::inForkedChild());  // which shares the open file, and would take the kernel's notice from the parent
  int list = g_list.load(std::memory_order_acquire);
  const bool first = list == kNotOpen;
  if (first || (list >= 0 && (sys::pollNow(list, POLLPRI) & POLLPRI) != 0)) [[unlikely]] {
    const Lock lock(g_mutex);
    list = g_list.load(std::memory_order_relaxed);
    if (list == kNotOpen) {
      list = sys::keepOwn(sys::call(SYS_openat, AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0));
      if (list == kNotOpen) list = -ENOENT;
    }
    if (list >= 0) readList(list);
    if (list >= 0 || lasts(list)) g_list.store(list, std::memory_order_release);
  }
  return g_slow.load(std::memory_order_acquire)->count.load(std::memory_order_relaxed) > 0;
}

SlowKind slowKindOf(dev_t device) {
  const SlowMounts& slow = *g_slow.load(std::memory_order_acquire);
  const size_t count = slow.count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < std::min(count, kMost); ++i) {
    const uint64_t mount = slow.mounts[i].load(std::memory_order_relaxed);
    if (mount >> 2 == device) return static_cast<SlowKind>(mount & 3);
  }
  return count > kMost ? SlowKind::kFuse : SlowKind::kNone;
}

}  // namespace sylar::detail
