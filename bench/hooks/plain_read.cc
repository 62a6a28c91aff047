// Reads N times from a pipe, on a plain thread, outside any fiber. Built twice: with the hooks linked and without, so that a
// simulator can tell how many instructions they add to a `read` that is none of their business.
#include <unistd.h>

#include <cstdlib>
#include <vector>

extern "C" [[gnu::noinline]] void measuredReads(int fd, int count) {
  char byte = 0;
  for (int i = 0; i < count; ++i) {
    if (read(fd, &byte, 1) != 1) std::abort();
  }
}

int main(int argc, char** argv) {
  const int count = argc == 2 ? std::atoi(argv[1]) : 0;
  int fds[2];
  if (count < 1 || count > 30'000 || pipe(fds) != 0) return 2;  // as much as a pipe holds
  const std::vector<char> bytes(count + 1);
  if (write(fds[1], bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return 1;
  measuredReads(fds[0], 1);  // the first call resolves symbols
  measuredReads(fds[0], count);
}
