// Unmodified ZeroMQ in many fibers of which some fail: its errors are in errno, and its own thread wakes who waits.
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "tests/integration/clients/matrix.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(void* socket) const { EXPECT_EQ(::zmq_close(socket), 0); }
};
using Socket = std::unique_ptr<void, Free>;

class Context {
 public:
  ~Context() { EXPECT_EQ(::zmq_ctx_term(m_context), 0); }
  Socket open(int type) {
    Socket socket(::zmq_socket(m_context, type));
    const int none = 0, patience = static_cast<int>(std::chrono::milliseconds(kPatience).count());
    EXPECT_EQ(::zmq_setsockopt(socket.get(), ZMQ_LINGER, &none, sizeof none), 0);
    EXPECT_EQ(::zmq_setsockopt(socket.get(), ZMQ_RCVTIMEO, &patience, sizeof patience), 0);
    return socket;
  }

 private:
  void* const m_context = ::zmq_ctx_new();
};

/// What a call has given. All others make theirs before this looks for its error.
std::string told(Users& us, int result) {
  us.meet();
  return result >= 0 ? std::to_string(result) + '\n' : std::string(::zmq_strerror(::zmq_errno())) + '\n';
}

std::string receive(Users& us, const Socket& socket) {
  char bytes[100];
  const int size = ::zmq_recv(socket.get(), bytes, sizeof bytes, 0);
  const std::string end = told(us, size);
  return size >= 0 ? std::string(bytes, static_cast<size_t>(size)) + ' ' + end : end;
}

void setTimeout(const Socket& socket, int option, int ms) {
  EXPECT_EQ(::zmq_setsockopt(socket.get(), option, &ms, sizeof ms), 0);
}

/// The context of all users, and where they are.
struct Place {
  Context context;
  std::string addresses[Users::kSize / 2];
};

/// Of each pair of users the even number answers what the odd one asks. Then each does something that fails.
std::string use(Users& us, size_t i, Place& place, const std::string& wanted) {
  const bool answers = i % 2 == 0;
  const Socket socket = place.context.open(answers ? ZMQ_REP : ZMQ_REQ);
  std::string& address = place.addresses[i / 2];
  if (answers) {
    EXPECT_EQ(::zmq_bind(socket.get(), wanted.c_str()), 0);
    char bound[256];
    size_t size = sizeof bound;
    EXPECT_EQ(::zmq_getsockopt(socket.get(), ZMQ_LAST_ENDPOINT, bound, &size), 0);
    address = bound;
  }
  us.meet();
  if (!answers) {
    EXPECT_EQ(::zmq_connect(socket.get(), address.c_str()), 0);
  }
  const std::string text = "from " + std::to_string(i);
  const auto send = [&] { return told(us, ::zmq_send(socket.get(), text.data(), text.size(), 0)); };
  std::string seen;
  for (int round = 0; round < 3; ++round) {
    if (answers) {
      seen += receive(us, socket);
      seen += send();
    } else {
      seen += send();
      seen += receive(us, socket);
    }
  }
  switch (i / 2 % 6) {
    case 0: return seen += told(us, answers ? ::zmq_bind(socket.get(), "tcp://nothing") : ::zmq_connect(socket.get(), "udp://"));
    case 1: setTimeout(socket, ZMQ_RCVTIMEO, 20 + static_cast<int>(i)); return seen + receive(us, socket);
    case 2: setTimeout(socket, ZMQ_RCVTIMEO, 0); return seen + receive(us, socket);
    case 3: return seen + told(us, ::zmq_setsockopt(socket.get(), 12345, "", 0));
    case 4:
      return seen +
             told(us, answers ? ::zmq_bind(socket.get(), address.c_str()) : ::zmq_disconnect(socket.get(), "tcp://127.0.0.1:1"));
    default: return seen + told(us, answers ? ::zmq_poll(nullptr, 1, -1) : ::zmq_proxy(nullptr, nullptr, nullptr));
  }
}

void seesOver(const std::string& transport, const std::string& unique) {
  std::unique_ptr<Place> place;
  seesInFibersWhatItSeesInThreads(7, [&](Users& us, size_t i) {
    if (i == 0) place = std::make_unique<Place>();
    us.meet();
    const std::string seen = use(us, i, *place, transport + (unique.empty() ? std::to_string(i) : unique));
    us.meet();
    if (i == 0) place = nullptr;
    return seen;
  });
}

TEST(Zmq, SeesInFibersWhatItSeesInThreads) { seesOver("inproc://", ""); }
TEST(Zmq, SeesOverTcpInFibersWhatItSeesInThreads) { seesOver("tcp://127.0.0.1:", "*"); }

// What waits for a message when its context ends is told so.
TEST(Zmq, TheEndOfAContextIsToldToAll) {
  seesInFibersWhatItSeesInThreads(2, [&](Users& us, size_t i) {
    static void* s_context;
    if (i == 0) s_context = ::zmq_ctx_new();
    us.meet();
    if (i == 0) {
      us.meet();
      us.meet();
      return std::to_string(::zmq_ctx_term(s_context));
    }
    void* const socket = ::zmq_socket(s_context, ZMQ_PULL);
    us.meet();
    us.meet();
    char byte;
    std::string seen = std::to_string(::zmq_recv(socket, &byte, 1, 0));
    seen += ::zmq_strerror(::zmq_errno());
    EXPECT_EQ(::zmq_close(socket), 0);
    return seen;
  });
}

}  // namespace
}  // namespace sylar::test
