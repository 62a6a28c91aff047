// Unmodified gRPC in many fibers. Its locks are Abseil's (absl_test.cc), and it keeps what a call does in
// variables of the thread. The service is one of bytes, without generated code.
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sylar/sync/event.h"
#include "tests/hook/support.h"
#include "tests/integration/clients/crowd.h"

namespace sylar::test {
namespace {

using namespace std::chrono_literals;
using grpc::ByteBuffer;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

constexpr const char* kAsk = "/test/ask";
constexpr const char* kTalk = "/test/talk";

ByteBuffer bytesOf(const std::string& text) {
  const grpc::Slice slice(text);
  return ByteBuffer(&slice, 1);
}
std::string textOf(const ByteBuffer& bytes) {
  if (!bytes.Valid()) return "";  // of a call that has ended before its question came
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& one : slices) text.append(reinterpret_cast<const char*>(one.begin()), one.size());
  return text;
}

/// Answers to a question, and to each of a conversation, by `answer`.
class Service : public grpc::Service {
 public:
  using Answer = std::function<std::string(const std::string& question)>;
  explicit Service(Answer answer) : m_answer(std::move(answer)) {
    const auto ask = [](Service* self, grpc::ServerContext*, const ByteBuffer* question, ByteBuffer* answer_bytes) {
      *answer_bytes = bytesOf(self->m_answer(textOf(*question)));
      return grpc::Status::OK;
    };
    const auto talk = [](Service* self, grpc::ServerContext*, grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>* stream) {
      for (ByteBuffer question; stream->Read(&question);) stream->Write(bytesOf(self->m_answer(textOf(question))));
      return grpc::Status::OK;
    };
    AddMethod(new RpcServiceMethod(kAsk, RpcMethod::NORMAL_RPC,
                                   new grpc::internal::RpcMethodHandler<Service, ByteBuffer, ByteBuffer>(ask, this)));
    AddMethod(new RpcServiceMethod(kTalk, RpcMethod::BIDI_STREAMING,
                                   new grpc::internal::BidiStreamingHandler<Service, ByteBuffer, ByteBuffer>(talk, this)));
  }

 private:
  const Answer m_answer;
};

/// A server that dies and comes back at its port.
class Server {
 public:
  explicit Server(Service::Answer answer) : m_service(std::move(answer)) {
    const int on = 1;
    EXPECT_EQ(::setsockopt(m_reserved, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    const sockaddr_in address = loopback();
    EXPECT_EQ(::bind(m_reserved, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    m_address = "127.0.0.1:" + std::to_string(ntohs(addressOf(m_reserved).sin_port));
    starts();
  }
  ~Server() {
    dies();
    isGone();
    ::close(m_reserved);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void starts() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(m_address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&m_service);
    m_server = builder.BuildAndStart();
    EXPECT_GT(port, 0);
  }
  /// Ends all calls, whose handlers may go on.
  void dies() {
    m_end = std::thread([this] { m_server->Shutdown(std::chrono::system_clock::now()); });
  }
  /// Returns when the handlers have ended.
  void isGone() {
    m_end.join();
    m_server.reset();
  }

  /// With `own`, a connection that is shared with no other channel.
  std::shared_ptr<grpc::Channel> channel(bool own = false) const {
    grpc::ChannelArguments settings;
    settings.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, own);
    settings.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    settings.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    return grpc::CreateCustomChannel(m_address, grpc::InsecureChannelCredentials(), settings);
  }

 private:
  // A socket that does not listen keeps the port for the server, whether that runs or not.
  const int m_reserved = ::socket(AF_INET, SOCK_STREAM, 0);
  std::string m_address;
  Service m_service;
  std::unique_ptr<grpc::Server> m_server;
  std::thread m_end;
};

/// What a call has given: the answer, or the number of the error.
std::string ask(grpc::Channel& channel, grpc::ClientContext& context, const std::string& question) {
  ByteBuffer answer;
  const grpc::Status status = grpc::internal::BlockingUnaryCall<ByteBuffer, ByteBuffer, ByteBuffer, ByteBuffer>(
      &channel, RpcMethod(kAsk, RpcMethod::NORMAL_RPC), &context, bytesOf(question), &answer);
  return status.ok() ? textOf(answer) : "error " + std::to_string(status.error_code());
}
std::string ask(grpc::Channel& channel, const std::string& question) {
  grpc::ClientContext context;
  return ask(channel, context, question);
}
const std::string kUnavailable = "error " + std::to_string(grpc::StatusCode::UNAVAILABLE);
const std::string kDeadline = "error " + std::to_string(grpc::StatusCode::DEADLINE_EXCEEDED);

class Grpc : public Crowds {
 protected:
  ~Grpc() override {
    if (m_is_up) ::grpc_shutdown_blocking();
  }
  static void SetUpTestSuite() {
    // This gRPC takes errno for that of connect after it has locked mutexes (grpc/grpc#35064), and the first wait in Abseil leaves
    // ENOENT there, because it looks for the frequency of the processor.
    absl::Mutex mutex;
    const bool never = false;
    const absl::MutexLock lock(&mutex);
    EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(1)));
    ::grpc_init();
    ::grpc_shutdown_blocking();  // which leaves two descriptors open
  }
  void SetUp() override {
    if (!ThreadsAreFibers::supported()) GTEST_SKIP() << "fibers run as their worker in this build";
  }
  /// Starts the library, with threads that are none of the crowd's.
  void init() {
    ::grpc_init();
    m_is_up = true;
  }

 private:
  bool m_is_up = false;
};
INSTANTIATE_TEST_SUITE_P(Workers, Grpc, kOneAndTwo);

// HA-6
TEST_P(Grpc, CallsWaitForTheirAnswers) {
  init();
  Gate answers;
  std::atomic<size_t> asked{0};
  Server server([&](const std::string& question) {
    ++asked;
    EXPECT_TRUE(answers.wait());
    return "answer to " + question;
  });
  const auto shared = server.channel();
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    const auto channel = i % 2 == 0 ? shared : server.channel(true);
    us.arrive();
    for (int round = 0; round < 5; ++round) {
      const std::string question = std::to_string(i) + std::string(i % 4 * 50'000, 'x');
      EXPECT_TRUE(ask(*channel, question) == "answer to " + question) << question.size();
    }
  });
  EXPECT_TRUE(eventually([&] { return asked == Crowd::kSize; }));
  crowd.untilAllWait();
  answers.open();
}

TEST_P(Grpc, CallsEndAtTheirDeadline) {
  init();
  Gate answers;
  Server server([&](const std::string&) {
    EXPECT_TRUE(answers.wait());
    return "";
  });
  const auto channel = server.channel();
  Crowd crowd(workers(), [&](Crowd&, size_t) {
    for (int round = 0; round < 2; ++round) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + 50ms);
      EXPECT_EQ(ask(*channel, context, "anything"), kDeadline);  // on a busy machine before its time, on threads as well
    }
  });
  crowd.end();
  answers.open();
}

TEST_P(Grpc, TheServerDiesAndReturns) {
  init();
  Gate answers;
  std::atomic<size_t> asked{0};
  Server server([&](const std::string& question) {
    ++asked;
    EXPECT_TRUE(answers.wait());
    return question;
  });
  const auto shared = server.channel();
  Event gone;
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    const auto channel = i % 2 == 0 ? shared : server.channel(true);
    EXPECT_EQ(ask(*channel, "first").substr(0, 5), "error");  // unavailable or cancelled, as the server's end comes about
    us.arrive();
    EXPECT_TRUE(gone.wait());
    EXPECT_EQ(ask(*channel, "never"), kUnavailable);
    us.arrive();
    grpc::ClientContext patient;
    patient.set_wait_for_ready(true);
    EXPECT_EQ(ask(*channel, patient, "again"), "again");
  });
  EXPECT_TRUE(eventually([&] { return asked == Crowd::kSize; }));
  crowd.workersGoOn();
  server.dies();
  crowd.untilAllWait();
  answers.open();
  server.isGone();
  gone.set();
  crowd.untilAllWait(2);
  server.starts();
}

TEST_P(Grpc, StreamsGoBothWays) {
  init();
  Server server([](const std::string& question) {
    ::usleep(1);
    return "answer to " + question;
  });
  const auto channel = server.channel();
  Crowd crowd(workers(), [&](Crowd&, size_t i) {
    grpc::ClientContext context;
    using Streams = grpc::internal::ClientReaderWriterFactory<ByteBuffer, ByteBuffer>;
    const std::unique_ptr<grpc::ClientReaderWriter<ByteBuffer, ByteBuffer>> stream(
        Streams::Create(channel.get(), RpcMethod(kTalk, RpcMethod::BIDI_STREAMING), &context));
    for (int round = 0; round < 20; ++round) {
      const std::string question = std::to_string(i) + ' ' + std::to_string(round);
      EXPECT_TRUE(stream->Write(bytesOf(question)));
      ByteBuffer answer;
      ASSERT_TRUE(stream->Read(&answer));
      EXPECT_EQ(textOf(answer), "answer to " + question);
    }
    EXPECT_TRUE(stream->WritesDone());
    ByteBuffer none;
    EXPECT_FALSE(stream->Read(&none));
    EXPECT_TRUE(stream->Finish().ok());
  });
}

// Cause: epoll_wait failed, and gRPC left a call on the fiber's stack to which it went on writing.
TEST_P(Grpc, ADeadlineScopeEndsNoCall) {
  init();
  Gate answers;
  Server server([&](const std::string& question) {
    EXPECT_TRUE(answers.wait());
    return "answer to " + question;
  });
  const auto channel = server.channel();
  inFiber([&] {
    withDeadline(Deadline::after(20ms), [&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + 100ms);
      EXPECT_EQ(ask(*channel, context, "anything"), kDeadline) << "its own one does";
      const Deadline scope = this_fiber::deadline();
      std::thread later([&] {
        while (steadyClock().nowNs() < scope.ns()) ::sched_yield();
        answers.open();
      });
      EXPECT_EQ(ask(*channel, "something"), "answer to something");
      later.join();
    });
  });
  BlockingPool::process().endAll();
}

// The threads of the library, and those of the handlers, are fibers as well.
TEST_P(Grpc, AllOfItIsFibers) {
  std::atomic<size_t> kernel_threads{0};
  std::atomic<bool> done{false};
  std::atomic<size_t> answered{0};
  std::atomic<int> ticks{0};
  const ThreadsAreFibers threads_are_fibers;
  const size_t before = entriesOf("/proc/self/task");
  IOManager iom(workers(), false, "grpc");
  iom.place([&] {
    for (; !done; ++ticks) ::usleep(2000);
  });
  const auto run = [&] {
    ::grpc_init();
    {
      Server server([&](const std::string& question) {
        ::usleep(10'000);
        return question;
      });
      const auto channel = server.channel();
      std::vector<std::thread> threads;
      for (size_t i = 0; i < Crowd::kSize; ++i) {
        threads.emplace_back([&, i] {
          for (int round = 0; round < 5; ++round) answered += ask(*channel, std::to_string(i)) == std::to_string(i);
        });
      }
      const int ticked = ticks;
      while (ticks < ticked + 3) ::usleep(1000);
      kernel_threads = entriesOf("/proc/self/task");
      for (std::thread& thread : threads) thread.join();
    }
    ::grpc_shutdown_blocking();
  };
  iom.schedule([&] {
    std::thread(run).join();
    done = true;
  });
  iom.stop();
  EXPECT_EQ(answered.load(), 5 * Crowd::kSize);
  EXPECT_LT(kernel_threads.load(), before + Crowd::kSize) << "before: " << before;  // workers, and helpers for names and files
  BlockingPool::process().endAll();
}

}  // namespace
}  // namespace sylar::test
