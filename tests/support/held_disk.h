// For tests: a file system of a process (FUSE) that holds what it is asked for until the test lets it go.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "sylar/check.h"
#include "tests/support/own_mounts.h"

namespace sylar::test {

/// The file system, mounted on a folder of its own. It has a file, by any name that begins with "file". Another process serves it:
/// of one whose own threads wait for it not even a kill would end them.
class HeldDisk {
 public:
  static constexpr size_t kSize = 100'000;
  static char byteAt(size_t offset) { return static_cast<char>('a' + offset % 23); }

  /// On the main thread, before others that are to see it.
  HeldDisk() {
    hideMounts();
    char name[] = "/tmp/sylar_disk_XXXXXX";
    m_folder = ::mkdtemp(name);
    const int device = static_cast<int>(::syscall(SYS_open, "/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string options = "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
    m_mounted = device >= 0 && ::mount("sylar", m_folder.c_str(), "fuse.sylar", 0, options.c_str()) == 0;
    m_server = m_mounted ? static_cast<pid_t>(::syscall(SYS_fork)) : -1;
    if (m_server == 0) serve(device);
    ::syscall(SYS_close, device);
  }
  ~HeldDisk() {
    letGo();
    if (m_mounted) {
      EXPECT_EQ(::umount2(m_folder.c_str(), MNT_DETACH), 0);
      ::kill(m_server, SIGKILL);  // which fails what is held
      int status = 0;
      EXPECT_EQ(::waitpid(m_server, &status, 0), m_server);
    }
    std::filesystem::remove(m_folder);
  }
  HeldDisk(const HeldDisk&) = delete;
  HeldDisk& operator=(const HeldDisk&) = delete;

  bool mounted() const { return m_mounted; }
  std::string path(const std::string& name = "file") const { return m_folder + '/' + name; }
  const std::string& folder() const { return m_folder; }

  /// Holds the requests of this kind that come from now on.
  void hold(fuse_opcode kind) {
    m_shared.seen = 0;
    m_shared.held = kind;
  }
  void letGo() { m_shared.held = 0; }
  /// Returns how many requests are held.
  unsigned held() const { return m_shared.seen; }
  /// Returns true if it went on by itself, because nobody let it go for half a minute.
  bool gaveUp() const { return m_shared.gave_up; }

 private:
  struct Shared {
    std::atomic<uint32_t> held{0}, seen{0};
    std::atomic<bool> gave_up{false};
  };
  struct Answer {
    fuse_out_header head{};
    char body[1 << 17];
  };

  static fuse_attr attributes(uint64_t node) {
    fuse_attr one{};
    one.ino = node;
    one.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
    one.nlink = 1;
    one.size = node == FUSE_ROOT_ID ? 0 : kSize;
    one.blocks = 200;
    one.mtime = 1'000'000'000;
    one.mtimensec = 5;
    one.uid = 7;
    one.blksize = 4096;
    return one;
  }

  template <class T>
  static size_t put(Answer& answer, const T& body) {
    std::memcpy(answer.body, &body, sizeof body);
    return sizeof body;
  }

  /// Carries out a request. Returns the size of the answer's body, or -errno.
  static long carryOut(const fuse_in_header& request, Answer& answer) {
    const auto* const body = reinterpret_cast<const char*>(&request + 1);
    switch (request.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = 31;
        out.max_write = 1 << 16;
        out.max_readahead = 1 << 16;
        return static_cast<long>(put(answer, out));
      }
      case FUSE_LOOKUP: {
        if (std::strncmp(body, "file", 4) != 0) return -ENOENT;
        fuse_entry_out out{};  // which is forgotten at once
        out.nodeid = 2;
        out.attr = attributes(2);
        return static_cast<long>(put(answer, out));
      }
      case FUSE_GETATTR:
      case FUSE_SETATTR: {
        fuse_attr_out out{};
        out.attr = attributes(request.nodeid);
        return static_cast<long>(put(answer, out));
      }
      case FUSE_OPEN:
      case FUSE_OPENDIR: {
        fuse_open_out out{};
        out.open_flags = FOPEN_DIRECT_IO;  // each read is a request
        return static_cast<long>(put(answer, out));
      }
      case FUSE_READ: {
        const auto& in = *reinterpret_cast<const fuse_read_in*>(body);
        const size_t end = std::min<size_t>(in.offset + in.size, kSize);
        for (size_t i = in.offset; i < end; ++i) answer.body[i - in.offset] = byteAt(i);
        return in.offset < end ? static_cast<long>(end - in.offset) : 0;
      }
      case FUSE_WRITE: {
        fuse_write_out out{};
        out.size = reinterpret_cast<const fuse_write_in*>(body)->size;
        return static_cast<long>(put(answer, out));
      }
      case FUSE_FSYNC:
      case FUSE_FLUSH:
      case FUSE_RELEASE:
      case FUSE_RELEASEDIR: return 0;
      default: return -ENOSYS;
    }
  }

  static void answer(int device, const char* bytes) {
    static Answer s_answer;
    const auto& request = *reinterpret_cast<const fuse_in_header*>(bytes);
    const long size = carryOut(request, s_answer);
    s_answer.head.unique = request.unique;
    s_answer.head.error = size < 0 ? static_cast<int>(size) : 0;
    s_answer.head.len = static_cast<uint32_t>(sizeof s_answer.head + static_cast<size_t>(std::max(size, 0L)));
    [[maybe_unused]] const long n = ::syscall(SYS_write, device, &s_answer, s_answer.head.len);
  }

  [[noreturn]] void serve(int device) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    static char s_bytes[1 << 18];
    std::vector<std::string> waiting;
    for (int ms_held = 0;; ms_held = waiting.empty() ? 0 : ms_held + 1) {
      pollfd one{device, POLLIN, 0};
      const timespec moment{0, 1'000'000};
      const bool comes = ::syscall(SYS_ppoll, &one, 1, waiting.empty() ? nullptr : &moment, nullptr, 0) > 0;
      if (ms_held > 30'000) {
        m_shared.gave_up = true;
        m_shared.held = 0;
      }
      if (m_shared.held == 0) {
        for (const std::string& request : waiting) answer(device, request.data());
        waiting.clear();
      }
      if (!comes) continue;
      const long n = ::syscall(SYS_read, device, s_bytes, sizeof s_bytes);
      if (n < 0 && errno == ENODEV) ::_exit(0);
      if (n <= 0) continue;
      const uint32_t kind = reinterpret_cast<const fuse_in_header*>(s_bytes)->opcode;
      if (kind == FUSE_FORGET || kind == FUSE_BATCH_FORGET || kind == FUSE_INTERRUPT || kind == FUSE_DESTROY) continue;
      if (kind == m_shared.held) {
        waiting.emplace_back(s_bytes, static_cast<size_t>(n));
        ++m_shared.seen;
      } else {
        answer(device, s_bytes);
      }
    }
  }

  Shared& m_shared = *new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
  std::string m_folder;
  bool m_mounted = false;
  pid_t m_server = -1;
};

}  // namespace sylar::test
