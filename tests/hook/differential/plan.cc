#include "tests/hook/differential/plan.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <random>
#include <utility>

namespace sylar::test::differential {
namespace {

/// The standard's distributions differ between libraries. This one does not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : m_bits(seed) {}
  int below(int end) { return static_cast<int>(m_bits() % static_cast<uint64_t>(end)); }
  template <class T, size_t n>
  T oneOf(const T (&values)[n]) {
    return values[below(static_cast<int>(n))];
  }

 private:
  std::mt19937_64 m_bits;
};

/// How often each step is taken. Those that transfer are the most.
constexpr Op kOps[] = {Op::k_create,   Op::k_create,    Op::k_dup,     Op::k_dup2,       Op::k_close,      Op::k_read,
                       Op::k_read,     Op::k_readv,     Op::k_recv,    Op::k_recv,       Op::k_recvfrom,   Op::k_recvfrom,
                       Op::k_recvfrom, Op::k_recvmsg,   Op::k_recvmsg, Op::k_write,      Op::k_write,      Op::k_write,
                       Op::k_writev,   Op::k_send,      Op::k_sendmsg, Op::k_sendrights, Op::k_sendrights, Op::k_reconnect,
                       Op::k_poll,     Op::k_poll,      Op::k_select,  Op::k_epoll,      Op::k_shutdown,   Op::k_timeout,
                       Op::k_mark,     Op::k_nonblock,  Op::k_connect, Op::k_connect,    Op::k_accept,     Op::k_accept,
                       Op::k_pass,     Op::k_available, Op::k_drain,   Op::k_drain};

int flagsOf(Op op, Dice& dice) {
  switch (op) {
    case Op::k_recvfrom: return dice.oneOf<int>({0, MSG_WAITALL, MSG_WAITALL, MSG_WAITALL, MSG_PEEK | MSG_WAITALL});
    case Op::k_recv:
    case Op::k_recvmsg: return dice.oneOf<int>({0, 0, MSG_PEEK, MSG_WAITALL, MSG_WAITALL, MSG_DONTWAIT, MSG_PEEK | MSG_WAITALL});
    case Op::k_send:
    case Op::k_sendmsg:
    case Op::k_sendrights: return dice.oneOf<int>({0, 0, MSG_DONTWAIT, MSG_NOSIGNAL});
    case Op::k_poll:
    case Op::k_select:
    case Op::k_epoll: return dice.oneOf<int>({POLLIN, POLLIN, POLLOUT, POLLIN | POLLOUT});
    case Op::k_shutdown: return dice.oneOf<int>({SHUT_RD, SHUT_WR, SHUT_WR, SHUT_RDWR});
    case Op::k_timeout: return dice.oneOf<int>({SO_RCVTIMEO, SO_SNDTIMEO});
    default: return dice.below(2);
  }
}

bool waitsInMs(Op op) { return op == Op::k_poll || op == Op::k_select || op == Op::k_epoll; }

/// Streams have the most rules.
constexpr Kind kKindsOften[] = {
    Kind::kTcp,  Kind::kTcp,  Kind::kTcp,     Kind::kUnixStream, Kind::kUnixStream, Kind::kUnixDatagram, Kind::kUnixSeqpacket,
    Kind::kPipe, Kind::kFifo, Kind::kEventfd, Kind::kListener,   Kind::kListener,   Kind::kUnixListener, Kind::kUnixListener};

/// Slots that steps have named lately. Half of the steps come back to one, so that they meet.
constexpr int kRecent = 3;
using Recent = std::array<int, kRecent>;

Step stepOf(Op op, Dice& dice, Recent& recent) {
  Step step{};
  step.op = op;
  step.slot = dice.below(2) == 0 ? recent[static_cast<size_t>(dice.below(kRecent))] : dice.below(kSlots);
  step.other = dice.below(kSlots);
  recent[static_cast<size_t>(dice.below(kRecent))] = dice.below(2) == 0 ? step.slot : step.other;
  step.kind = dice.oneOf(kKindsOften);
  step.size = dice.oneOf<int>({0, 1, 3, 8, 8, 16, 40, 40, 100, 200, 6000});
  step.flags = flagsOf(op, dice);
  step.timeout = waitsInMs(op) ? dice.oneOf<int>({0, 3, -1, -1}) : dice.oneOf<int>({0, 4});
  return step;
}

const char* nameOf(Op op) {
  static constexpr const char* kNames[] = {
#define SYLAR_NAME_(name) #name,
      SYLAR_OPS(SYLAR_NAME_)
#undef SYLAR_NAME_
  };
  return kNames[static_cast<int>(op)];
}

const char* nameOf(Kind kind) {
  static constexpr const char* kNames[] = {"tcp",  "unix stream", "unix dgram", "unix seqpacket", "pipe",
                                           "fifo", "eventfd",     "listener",   "unix listener"};
  return kNames[static_cast<int>(kind)];
}

/// What the slots will be if all goes well, so that most steps make sense.
class Table {
 public:
  bool makesSense(const Step& step) const {
    const int kind = at(step.slot);
    const int other = at(step.other);
    const bool listener = isListener(kind);
    const bool socket = kind != kNone && isSocket(static_cast<Kind>(kind)) && !listener;
    const bool is_unix = socket && !is(kind, Kind::kTcp);
    switch (step.op) {
      case Op::k_create: return kind == kNone && other == kNone && step.slot != step.other;
      case Op::k_connect:
      case Op::k_accept: return listener && other == kNone;
      case Op::k_reconnect: return socket && is(other, is_unix ? Kind::kUnixListener : Kind::kListener);
      case Op::k_sendrights: return is(kind, Kind::kUnixStream);
      case Op::k_dup:
      case Op::k_pass: return kind != kNone && other == kNone;
      case Op::k_dup2:
      case Op::k_poll: return kind != kNone && other != kNone && step.slot != step.other;
      case Op::k_mark: return is(kind, Kind::kTcp) || is(kind, Kind::kUnixStream);
      case Op::k_recv:
      case Op::k_recvfrom:
      case Op::k_recvmsg:
      case Op::k_send:
      case Op::k_sendmsg:
      case Op::k_timeout:
      case Op::k_shutdown: return socket;
      case Op::k_read:
      case Op::k_readv:
      case Op::k_drain: return kind != kNone && !listener && !m_writes[static_cast<size_t>(step.slot)];
      case Op::k_write:
      case Op::k_writev: return kind != kNone && !listener && !m_reads[static_cast<size_t>(step.slot)];
      default: return kind != kNone;
    }
  }
  void note(const Step& step) {
    const auto slot = static_cast<size_t>(step.slot);
    const auto other = static_cast<size_t>(step.other);
    if (!makesSense(step)) return;
    if (step.op == Op::k_create) {
      const bool is_one = step.kind == Kind::kEventfd || listens(step.kind);
      const bool is_queue = step.kind == Kind::kPipe || step.kind == Kind::kFifo;
      m_kinds[slot] = static_cast<int>(step.kind);
      m_kinds[other] = is_one ? kNone : m_kinds[slot];
      m_peers[slot] = step.other;
      m_peers[other] = step.slot;
      m_reads[slot] = m_writes[other] = is_queue;
      m_writes[slot] = m_reads[other] = false;
    } else if (step.op == Op::k_close) {
      m_kinds[slot] = kNone;
    } else if (step.op == Op::k_connect || step.op == Op::k_accept) {
      m_kinds[other] = static_cast<int>(is(m_kinds[slot], Kind::kListener) ? Kind::kTcp : Kind::kUnixStream);
      m_reads[other] = m_writes[other] = false;
      if (step.op == Op::k_accept) m_peers[static_cast<size_t>(m_peers[slot])] = step.other;
      m_peers[other] = std::exchange(m_peers[slot], step.other);
    } else if (step.op == Op::k_dup || step.op == Op::k_dup2 || step.op == Op::k_pass) {
      m_kinds[other] = m_kinds[slot];
      m_peers[other] = m_peers[slot];
      m_reads[other] = m_reads[slot];
      m_writes[other] = m_writes[slot];
    }
  }
  bool has(int slot, Kind kind) const { return is(at(slot), kind); }
  int peerOf(int slot) const { return m_peers[static_cast<size_t>(slot)]; }

 private:
  static constexpr int kNone = -1;
  static bool isListener(int kind) { return kind != kNone && listens(static_cast<Kind>(kind)); }
  static bool is(int kind, Kind wanted) { return kind == static_cast<int>(wanted); }
  int at(int slot) const { return m_kinds[static_cast<size_t>(slot)]; }

  std::array<int, kSlots> m_kinds = [] {
    std::array<int, kSlots> kinds;
    kinds.fill(kNone);
    return kinds;
  }();
  std::array<int, kSlots> m_peers{};    // the other end; of a listener, the socket that came last
  std::array<bool, kSlots> m_reads{};   // only
  std::array<bool, kSlots> m_writes{};  // only
};

void addInEitherOrder(Plan& plan, const Step& one, const Step& other, Dice& dice) {
  const bool swaps = dice.below(2) == 0;
  plan.push_back(swaps ? other : one);
  plan.push_back(swaps ? one : other);
}

/// Adds a step. Some steps come with others on the same connection, because they would rarely meet them by chance.
void add(Plan& plan, const Step& step, const Table& table, Dice& dice, Recent& recent) {
  if (step.op == Op::k_sendrights) {
    // Descriptors end a receive of more bytes, which has begun to wait for them or comes behind them.
    Step receive = stepOf(dice.oneOf({Op::k_recvfrom, Op::k_recvfrom, Op::k_readv}), dice, recent);
    receive.slot = table.peerOf(step.slot);
    receive.size += step.size;
    return addInEitherOrder(plan, step, receive, dice);
  }
  plan.push_back(step);
  if (step.op == Op::k_connect && table.has(step.slot, Kind::kUnixListener) && dice.below(2) == 0) {
    // A second connect waits for room in the listener, whatever becomes of the first connection.
    Step again = stepOf(Op::k_reconnect, dice, recent);
    Step shut = stepOf(Op::k_shutdown, dice, recent);
    again.slot = shut.slot = step.other;
    again.other = step.slot;
    addInEitherOrder(plan, again, shut, dice);
  }
}

}  // namespace

Plan planOf(uint64_t seed, int steps) {
  Dice dice(seed);
  Plan plan;
  Recent recent{0, 2, 4};
  Table table;
  for (int i = 0; i < 3; ++i) {  // something to work with
    Step make = stepOf(Op::k_create, dice, recent);
    make.slot = 2 * i;
    make.other = 2 * i + 1;
    table.note(make);
    plan.push_back(make);
  }
  while (static_cast<int>(plan.size()) < steps) {
    const Op op = kOps[dice.below(std::size(kOps))];
    Step step = stepOf(op, dice, recent);
    for (int tries = 0; tries < 30 && !table.makesSense(step); ++tries) step = stepOf(op, dice, recent);
    table.note(step);
    add(plan, step, table, dice, recent);
  }
  return plan;
}

std::string describe(const Step& step) {
  std::string text = nameOf(step.op);
  if (step.op == Op::k_create) text += std::string(" ") + nameOf(step.kind);
  text += " [" + std::to_string(step.slot) + "]";
  const auto add = [&text](const char* what, int value) { text += std::string(" ") + what + "=" + std::to_string(value); };
  switch (step.op) {
    case Op::k_create:
    case Op::k_dup:
    case Op::k_dup2:
    case Op::k_connect:
    case Op::k_reconnect:
    case Op::k_accept:
    case Op::k_pass: add("slot", step.other); break;
    case Op::k_poll: add("slot", step.other); [[fallthrough]];
    case Op::k_select:
    case Op::k_epoll:
      add("events", step.flags);
      add("ms", step.timeout);
      break;
    case Op::k_timeout: add("ms", step.timeout); [[fallthrough]];
    case Op::k_shutdown:
    case Op::k_nonblock: add("flags", step.flags); break;
    case Op::k_close:
    case Op::k_available:
    case Op::k_drain: break;
    default: add("size", step.size); add("flags", step.flags);
  }
  return text;
}

}  // namespace sylar::test::differential
