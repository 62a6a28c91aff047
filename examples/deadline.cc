// A deadline for calls that know nothing of it, as those in unmodified libraries.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "sylar/fiber.h"
#include "sylar/iomanager.h"

namespace {

// [deadline]
/// Reads a line, however slowly it comes, in at most 100 ms. Returns "" if there is none by then.
std::string readLine(int fd) {
  return sylar::withDeadline(sylar::Deadline::after(std::chrono::milliseconds(100)), [fd] {
    std::string line;
    char byte;
    while (read(fd, &byte, 1) == 1) {  // -1 with EAGAIN when the time is up
      if (byte == '\n') return line;
      line += byte;
    }
    return std::string();
  });
}
// [deadline]

void show() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return std::perror("socketpair");
  if (write(ends[1], "first\nsec", 9) != 9) return std::perror("write");
  std::printf("line: '%s'\n", readLine(ends[0]).c_str());
  std::printf("line: '%s'\n", readLine(ends[0]).c_str());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

int main() {
  sylar::IOManager iom(1, false, "deadline");
  iom.schedule(show);
}
