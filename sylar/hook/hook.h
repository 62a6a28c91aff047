// The hooks: plain libc calls that suspend the fiber instead of blocking the thread.
//
// Linking the target sylar::hook into a program interposes them, for the program and for every shared library in it. They act
// only in a fiber on an IOManager's worker (sleeps: on any Scheduler's); everywhere else they are libc. A hooked call gives the
// kernel's own result and errno: it tries without blocking, waits for the descriptor if it must, and tries again.
//
// Calls that suspend: sleep usleep nanosleep; connect accept accept4; read readv recv recvfrom recvmsg; write writev send sendto
// sendmsg; poll. On sockets, pipes and FIFOs; other descriptors block the thread. A descriptor or call with O_NONBLOCK or
// MSG_DONTWAIT never suspends. SO_RCVTIMEO and SO_SNDTIMEO hold. close wakes every waiter with EBADF.
#pragma once

#include <chrono>

namespace sylar {

/// Whether hooked calls may suspend here: in a fiber its own setting, elsewhere the thread's. True at first.
/// Thread safety: concerns the calling fiber or thread only. Source: sylar.
bool is_hook_enable();
void set_hook_enable(bool on);

/// How long a hooked connect may take before it fails with ETIMEDOUT; 0 or less: as long as the kernel allows. 5 s at first.
/// Thread safety: any thread; for connects that begin afterwards. Source: sylar's tcp.connect.timeout.
void setConnectTimeout(std::chrono::milliseconds timeout);

}  // namespace sylar
