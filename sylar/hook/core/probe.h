// Internal. Questions to the kernel about a descriptor, asked without waiting and without touching errno.
#pragma once

#include <time.h>

#include <array>
#include <cstddef>

namespace sylar::probe {

/// Polls one descriptor (poll(2)) and returns true if any of `events`, an error or a hang-up is there.
bool isReady(int fd, short events);
bool isNonblocking(int fd);
/// Returns an int option of level SOL_SOCKET, or -1.
int socketOption(int fd, int option);
/// Returns true if the next byte of a stream socket is behind the mark of urgent data; a receive that already has bytes ends
/// there.
bool atUrgentMark(int fd);
/// Returns true if a receive from a stream socket would find bytes, as far as FIONREAD tells.
bool hasBytes(int fd);
/// Returns true if a stream socket will get no more bytes than those that are there.
bool hasEnded(int fd);
/// Returns true if the socket has an error, or something in its error queue. Leaves it there.
bool hasError(int fd);
/// Returns true if the reading side of a socket is shut down. An error does not count as such an end.
bool isShutDown(int fd);
/// Returns true if `fd` is a TCP connection that is over. Its error belongs to the next call, not to the rest of a long write, so
/// it is left where it is.
bool tcpHasFailed(int fd);
bool isTcp(int fd);
/// Returns true if `fd` is a TCP socket whose connection is being made.
bool tcpConnects(int fd);

/// Returns the path by which the open file of `fd` can be looked at and opened again. proc(5).
std::array<char, 32> pathOf(int fd);
bool isEventfd(int fd);
/// Returns false if the kernel lets nobody wait for `fd` (EPERM of epoll_ctl).
bool isWaitable(int fd);
bool isTerminal(int fd);
/// Returns true if `fd` is a connection of AF_UNIX.
bool isUnixConnection(int fd);
/// Returns the error of a blocked write to a connection of AF_UNIX, as -errno, or 0. The kernel's own wait would have reported it
/// to the sender. Consumes the socket's error and raises no SIGPIPE.
long unixWriteError(int fd);

/// Returns true if a terminal is the master side of a pseudoterminal.
bool isMaster(int terminal);

/// Copies a timespec for a sleep, if the kernel would take it. Returns 0, -EFAULT or -EINVAL.
int duration(const timespec* from, timespec* to);
/// Copies `size` bytes that the user says are there. Returns false if they are not.
bool copyIn(void* to, const void* from, size_t size);
/// Copies `size` bytes to where the user wants them. Returns false if the memory cannot be written.
bool copyOut(void* to, const void* from, size_t size);

}  // namespace sylar::probe
