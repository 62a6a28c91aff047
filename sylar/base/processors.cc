#include "sylar/base/processors.h"

#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <climits>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "sylar/base/sys.h"

namespace sylar::detail {
namespace {

constexpr int64_t kNoQuota = INT_MAX;

/// Returns the number of processors in the thread's mask, or 0 if it cannot be had.
unsigned inAffinityMask() {
  std::vector<unsigned long> mask(CPU_SETSIZE / (CHAR_BIT * sizeof(unsigned long)));
  long size;
  while ((size = sys::call(SYS_sched_getaffinity, 0, mask.size() * sizeof mask[0], mask.data())) == -EINVAL &&
         mask.size() < 4096) {
    mask.resize(2 * mask.size());  // the kernel knows more processors
  }
  unsigned count = 0;
  for (size_t i = 0; size > 0 && i < size / sizeof mask[0]; ++i) count += static_cast<unsigned>(std::popcount(mask[i]));
  return count;
}

/// Returns the number that `word` is, or 0.
int64_t toNumber(std::string_view word) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? number : 0;
}

/// Returns how many processors a quota of `quota` us in `period` us keeps busy.
int64_t rounded(const std::string& quota, const std::string& period) {
  const int64_t of = toNumber(quota), in = toNumber(period);
  return of > 0 && in > 0 ? std::min((of - 1) / in + 1, kNoQuota) : kNoQuota;
}

std::string firstWord(std::istream& text) {
  std::string word;
  text >> word;
  return word;
}

int64_t quotaOfVersion2(const std::string& group) {
  std::ifstream file(group + "/cpu.max");
  const std::string quota = firstWord(file), period = firstWord(file);
  return rounded(quota, period);
}

int64_t quotaOfVersion1(const std::string& group) {
  std::ifstream quota(group + "/cpu.cfs_quota_us"), period(group + "/cpu.cfs_period_us");
  return rounded(firstWord(quota), firstWord(period));
}

/// Returns the least quota of the group at `path` below `root` and its ancestors. In a container the group's path may be the
/// host's, of which only the root is there.
int64_t leastQuota(int64_t (*quotaOf)(const std::string& group), const std::string& root, std::string path) {
  int64_t least = kNoQuota;
  while (true) {
    least = std::min(least, quotaOf(root + path));
    if (path.empty()) return least;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

bool hasWord(std::string_view list, std::string_view word) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (list.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

/// Returns the quota that a line of /proc/self/cgroup leads to: "0::PATH", or "NUMBER:CONTROLLERS:PATH" of version 1.
int64_t quotaOfLine(const std::string& line, const std::string& root) {
  const size_t first = line.find(':');
  const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) return kNoQuota;
  const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
  if (controllers.empty()) return leastQuota(quotaOfVersion2, root, path);
  if (!hasWord(controllers, "cpu")) return kNoQuota;
  return std::min(leastQuota(quotaOfVersion1, root + "/cpu", path), leastQuota(quotaOfVersion1, root + '/' + controllers, path));
}

}  // namespace

unsigned availableProcessors(const CgroupFiles& files) {
  int64_t count = inAffinityMask();
  if (count == 0) count = kNoQuota;
  std::ifstream memberships(files.memberships);
  for (std::string line; std::getline(memberships, line);) count = std::min(count, quotaOfLine(line, files.root));
  return count == kNoQuota ? 1 : static_cast<unsigned>(count);
}

}  // namespace sylar::detail
