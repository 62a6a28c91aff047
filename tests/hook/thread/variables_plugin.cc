// A library with thread_local variables that a program loads while it runs. libc makes them for each thread at its first use.
namespace {
thread_local int t_sum = 7;
thread_local int t_many[4096];
}  // namespace

extern "C" int add(int number) {
  t_many[number % 4096] += number;
  return t_sum += t_many[number % 4096];
}
