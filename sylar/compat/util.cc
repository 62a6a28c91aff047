#include "sylar/util.h"

#include <arpa/inet.h>
#include <execinfo.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "sylar/base/ascii.h"
#include "sylar/base/sys.h"
#include "sylar/clock.h"
#include "sylar/thread.h"

namespace sylar {
namespace {

/// Returns a frame such as "program(_ZN3foo3barEv+0x1d) [0x55...]" with its symbol demangled.
std::string readableFrame(const std::string& frame) {
  const size_t begin = frame.find('(') + 1;
  const size_t end = frame.find('+', begin);
  if (begin == 0 || end == std::string::npos || begin == end) return frame;
  return frame.substr(0, begin) + detail::demangle(frame.substr(begin, end - begin).c_str()) + frame.substr(end);
}

}  // namespace

pid_t GetThreadId() { return sys::threadId(); }
std::string GetThreadName() { return Thread::GetName(); }
void SetThreadName(const std::string& name) { Thread::SetName(name); }

uint64_t GetCurrentMS() { return GetCurrentUS() / 1000; }
uint64_t GetCurrentUS() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}
uint64_t GetElapsedMS() { return static_cast<uint64_t>(steadyClock().nowNs() / 1'000'000); }

std::string Time2Str(time_t ts, const std::string& format) {
  tm parts{};
  if (::localtime_r(&ts, &parts) == nullptr) return "";
  char text[256];
  return {text, std::strftime(text, sizeof text, format.c_str(), &parts)};
}

time_t Str2Time(const char* text, const char* format) {
  tm parts{};
  const char* const end = ::strptime(text, format, &parts);
  if (end == nullptr || *end != '\0') return 0;
  parts.tm_isdst = -1;  // lets mktime find out
  return std::mktime(&parts);
}

std::string ToLower(const std::string& text) { return asciiLower(text); }

std::string ToUpper(const std::string& text) {
  std::string upper = text;
  for (char& c : upper) {
    if ('a' <= c && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string GetIPv4() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_UP) == 0 || each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address;
    std::memcpy(&address, each->ifa_addr, sizeof address);
    constexpr uint32_t kLoopback = 127;
    if (ntohl(address.sin_addr.s_addr) >> 24 == kLoopback) continue;
    char text[INET_ADDRSTRLEN];
    return ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  }
  return "";
}

std::string GetHostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

void Backtrace(std::vector<std::string>& frames, int size, int skip) {
  if (size <= 0) return;
  std::vector<void*> addresses(static_cast<size_t>(size));
  const int found = ::backtrace(addresses.data(), size);
  const std::unique_ptr<char*, void (*)(void*)> names(::backtrace_symbols(addresses.data(), found), std::free);
  for (int i = std::max(skip, 0); names != nullptr && i < found; ++i) frames.push_back(readableFrame(names.get()[i]));
}

std::string BacktraceToString(int size, int skip, const std::string& prefix) {
  std::vector<std::string> frames;
  Backtrace(frames, size, skip);
  std::string text;
  for (const std::string& frame : frames) text += prefix + frame + '\n';
  return text;
}

}  // namespace sylar
