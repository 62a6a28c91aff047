// A plan: steps on a small table of descriptors, made from a seed. It names slots of the table and not
// numbers, so that it can be repeated with other functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sylar::test::differential {

constexpr int kActors = 4;  ///< how many calls are under way at once
constexpr int kSlots = 8;

enum class Kind : int { kTcp, kUnixStream, kUnixDatagram, kUnixSeqpacket, kPipe, kFifo, kEventfd, kListener, kUnixListener };
inline bool listens(Kind kind) { return kind == Kind::kListener || kind == Kind::kUnixListener; }
inline bool isSocket(Kind kind) { return kind <= Kind::kUnixSeqpacket || listens(kind); }
inline bool isStream(Kind kind) { return kind != Kind::kUnixDatagram && kind != Kind::kUnixSeqpacket; }

// clang-format off
#define SYLAR_OPS(X) X(create) X(dup) X(dup2) X(close) X(read) X(readv) X(recv) X(recvfrom) X(recvmsg) X(write) X(writev) \
  X(send) X(sendmsg) X(sendrights) X(poll) X(select) X(epoll) X(shutdown) X(timeout) X(mark) X(nonblock) X(connect) X(reconnect) \
  X(accept) X(pass) \
  X(available) X(drain)
// clang-format on
enum class Op : int {
#define SYLAR_OP_(name) k_##name,
  SYLAR_OPS(SYLAR_OP_)
#undef SYLAR_OP_
};

struct Step {
  Op op;
  int slot;
  int other;    ///< the slot that is made, the second one of a poll, or the listener to which a socket is connected again
  Kind kind;    ///< of what is created
  int size;     ///< of a transfer
  int flags;    ///< MSG_*, the events of a poll, or how to shut down
  int timeout;  ///< in ms; -1 is none
};

using Plan = std::vector<Step>;

Plan planOf(uint64_t seed, int steps);
std::string describe(const Step& step);

}  // namespace sylar::test::differential
