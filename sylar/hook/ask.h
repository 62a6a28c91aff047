// Internal. What the kernel says about a descriptor, asked without waiting and without touching errno.
#pragma once

#include <time.h>

#include <cstddef>

namespace sylar::ask {

/// poll(2) of one descriptor: whether any of `events`, an error or a hang-up is there.
bool isReady(int fd, short events);
/// An int option of level SOL_SOCKET, or -1.
int socketOption(int fd, int option);
/// Whether the next byte of a stream socket is behind the mark of urgent data: a receive that has bytes already ends there.
bool atUrgentMark(int fd);
/// Whether no more bytes will come to a stream socket than those that are there.
bool hasEnded(int fd);
/// Whether `fd` is a TCP connection that is over: its error belongs to the next call, not to the rest of a long write. Leaves it
/// where it is.
bool tcpHasFailed(int fd);

bool isTerminal(int fd);
/// Whether a terminal is the master side of a pseudoterminal.
bool isMaster(int terminal);

/// A timespec for a sleep, as the kernel takes it: 0, or -EFAULT, -EINVAL.
int duration(const timespec* from, timespec* to);
/// Copies `size` bytes that the user says are there; false: they are not.
bool copyIn(void* to, const void* from, size_t size);

}  // namespace sylar::ask
