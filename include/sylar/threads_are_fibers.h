// Threads that a fiber makes become fibers.
#pragma once

namespace sylar {

/// While one exists, what a fiber of a scheduler makes as a thread (pthread_create, std::thread, thrd_create) becomes a fiber of
/// the same scheduler, and so does what that makes. No kernel thread runs it. To the program and to libc it is a thread in all
/// other respects that docs/design/identity.md does not list: it has its own pthread_t, stack, thread_local variables,
/// pthread_key_t values, errno, id (gettid) and signal mask, it is joined, detached, cancelled and named as threads are, and its
/// destructors run at its end. What is made outside fibers, or where the processor or the build does not allow it (supported()), is
/// a thread.
///
/// Such a fiber must not compute forever without a call that is hooked, because nothing interrupts it (under sylar-run it is
/// preempted). All of them have one alternate signal stack, one scheduling policy and one set of processors: those of their worker.
/// pthread_cancel and pthread_kill end their waits under HookEintr::kPosix only.
///
/// Thread safety: any thread. May suspend: no. Source: pthread_create(3); `sylar-run --threads=fibers`.
class ThreadsAreFibers {
 public:
  ThreadsAreFibers();
  ~ThreadsAreFibers();
  ThreadsAreFibers(const ThreadsAreFibers&) = delete;
  ThreadsAreFibers& operator=(const ThreadsAreFibers&) = delete;

  /// Returns false where threads stay threads: on other processors than x86-64, and in a program with ASan or TSan.
  static bool supported();
};

}  // namespace sylar
