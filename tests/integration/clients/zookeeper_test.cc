// ZooKeeper's unmodified C library in many fibers, and a server that is slow, dies and comes back. A call of it waits at a
// condition for what the threads of its session do. Plain fibers are enough: the library keeps nothing in variables of the thread
// but the buffers of its log, and hands on what it has written there before another fiber can run.
#define THREADED  // declares the calls that wait
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sylar/sync/event.h"
#include "tests/integration/clients/crowd.h"
#include "tests/integration/server_process.h"

namespace sylar::test {
namespace {

const ServerOfAllTests& g_server = ServerOfAllTests::add("zookeeper");

/// Of a session. Its connection is lost when nothing has come for two thirds of that. A connection that fails is tried again after
/// a sixtieth, or when a call is made.
constexpr int kTimeoutMs = 120'000;
const std::string kOk = ::zerror(ZOK);
const std::string kLost = ::zerror(ZCONNECTIONLOSS);

/// A session, which outlives its connection. Its calls return a value or an error.
class Session {
 public:
  Session()
      : m_handle(::zookeeper_init(("127.0.0.1:" + std::to_string(g_server->port())).c_str(), nullptr, kTimeoutMs, nullptr,
                                  nullptr, 0)) {
    EXPECT_NE(m_handle, nullptr);
  }
  ~Session() { EXPECT_EQ(::zookeeper_close(m_handle), ZOK); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int64_t id() const { return ::zoo_client_id(m_handle)->client_id; }

  /// The path of the new node.
  std::string create(const std::string& path, const std::string& value, int mode = ZOO_PERSISTENT) const {
    char made[200] = "";
    const int result = ::zoo_create(m_handle, path.c_str(), value.data(), static_cast<int>(value.size()), &ZOO_OPEN_ACL_UNSAFE,
                                    mode, made, sizeof made);
    return result == ZOK ? made : ::zerror(result);
  }
  std::string set(const std::string& path, const std::string& value) const {
    return ::zerror(::zoo_set(m_handle, path.c_str(), value.data(), static_cast<int>(value.size()), -1));
  }
  /// `watcher` is told of the next change.
  std::string get(const std::string& path, Stat* stat = nullptr, watcher_fn watcher = nullptr, void* context = nullptr) const {
    char value[200];
    int size = sizeof value;
    const int result = ::zoo_wget(m_handle, path.c_str(), watcher, context, value, &size, stat);
    return result == ZOK ? std::string(value, static_cast<size_t>(size)) : ::zerror(result);
  }
  std::set<std::string> children(const std::string& path) const {
    String_vector names{};
    EXPECT_EQ(::zoo_get_children(m_handle, path.c_str(), 0, &names), ZOK);
    std::set<std::string> all(names.data, names.data + names.count);
    ::deallocate_String_vector(&names);
    return all;
  }

 private:
  zhandle_t* const m_handle;
};

/// What `call` returns when there is a connection.
template <class Call>
std::string connected(Call call) {
  std::string result;
  while ((result = call()) == kLost) ::usleep(10'000);
  return result;
}

/// The change of a node, of which a thread of the library tells. It must outlive the session.
class Change {
 public:
  static void tell(zhandle_t*, int type, int, const char*, void* context) {
    if (type != ZOO_SESSION_EVENT) static_cast<Change*>(context)->happens(type);
  }
  /// Returns the type. There are three ways to wait.
  int wait(size_t way) {
    if (way % 3 == 0) return m_told.get_future().get();
    if (way % 3 == 1) {
      EXPECT_TRUE(m_event.wait());
      return m_type;
    }
    std::unique_lock lock(m_mutex);
    m_happened.wait(lock, [&] { return m_type != 0; });
    return m_type;
  }

 private:
  void happens(int type) {
    {
      const std::lock_guard lock(m_mutex);
      EXPECT_EQ(std::exchange(m_type, type), 0);
    }
    m_happened.notify_all();
    m_event.set();
    m_told.set_value(type);
  }

  std::mutex m_mutex;
  std::condition_variable m_happened;
  int m_type = 0;
  Event m_event;
  std::promise<int> m_told;
};

/// A test with a node of its own, and with a session on a plain thread.
class Zookeeper : public Crowds {
 protected:
  static void SetUpTestSuite() { ::zoo_set_debug_level(static_cast<ZooLogLevel>(0)); }  // losses are no news

  std::string path(const std::string& name) const { return m_path + '/' + name; }
  std::string path(size_t i) const { return path(std::to_string(i)); }
  const std::string& path() const { return m_path; }
  const Session& own() const { return m_own; }

 private:
  const Session m_own;
  const std::string m_path = m_own.create("/test-", "", ZOO_PERSISTENT_SEQUENTIAL);
};
INSTANTIATE_TEST_SUITE_P(Workers, Zookeeper, kOneAndTwo);

// HA-6
TEST_P(Zookeeper, AllWaitForASlowServerAndOverItsDeath) {
  Event slow, gone;
  g_server->suspend();
  {
    Crowd crowd(workers(), [&](Crowd& us, size_t i) {
      const Session session;
      us.arrive();
      EXPECT_EQ(session.create(path(i), "first"), path(i));
      EXPECT_EQ(session.set(path(i), "second"), kOk);
      EXPECT_EQ(session.get(path(i)), "second");
      const std::string lasts_as_long_as_the_session = path("of " + std::to_string(i));
      EXPECT_EQ(session.create(lasts_as_long_as_the_session, "", ZOO_EPHEMERAL), lasts_as_long_as_the_session);
      us.arrive();
      EXPECT_TRUE(slow.wait());
      us.arrive();
      EXPECT_EQ(session.set(path(i), "never"), kLost);
      us.arrive();
      EXPECT_TRUE(gone.wait());
      EXPECT_EQ(session.set(path(i), "neither"), kLost);
      us.arrive();
      EXPECT_EQ(connected([&] { return session.set(path(i), "again"); }), kOk);
      EXPECT_EQ(session.get(path(i)), "again");
      Stat stat{};
      EXPECT_EQ(session.get(lasts_as_long_as_the_session, &stat), "");
      EXPECT_EQ(stat.ephemeralOwner, session.id());
    });
    crowd.untilAllWait();
    g_server->resume();
    crowd.untilAllWait(2);
    g_server->suspend();
    slow.set();
    crowd.untilAllWait(3);
    g_server->kill();
    crowd.untilAllWait(4);
    gone.set();
    crowd.untilAllWait(5);
    g_server->start();
  }
  for (size_t i = 0; i < Crowd::kSize; ++i) {
    Stat stat{};
    EXPECT_EQ(connected([&] { return own().get(path(i), &stat); }), "again");
    EXPECT_EQ(stat.version, 2);  // "second" and "again"
  }
}

TEST_P(Zookeeper, FibersShareASession) {
  constexpr size_t kRounds = 10;
  std::mutex mutex;
  std::set<std::string> names;
  std::optional<Session> shared(std::in_place);
  g_server->suspend();
  {
    Crowd crowd(workers(), [&](Crowd& us, size_t) {
      us.arrive();
      for (size_t round = 0; round < kRounds; ++round) {
        const std::string made = shared->create(path("n"), "", ZOO_EPHEMERAL_SEQUENTIAL);
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(names.insert(made.substr(path("").size())).second) << made;
      }
    });
    crowd.untilAllWait();
    g_server->resume();
  }
  std::set<std::string> expected;
  for (size_t i = 0; i < Crowd::kSize * kRounds; ++i) {
    char name[20];
    std::snprintf(name, sizeof name, "n%010zu", i);
    expected.insert(name);
  }
  EXPECT_EQ(names, expected);
  EXPECT_EQ(own().children(path()), expected);
  shared.reset();
  EXPECT_TRUE(eventually([&] { return own().children(path()).empty(); }));
}

// Each second fiber waits for what the one after it does. No change is missed, also when the server has died meanwhile.
TEST_P(Zookeeper, WatchesOutliveTheServer) {
  constexpr int kLast = 10;
  Event back;
  const auto watch = [&](Crowd& us, size_t i) {
    std::deque<Change> changes;
    const Session session;
    EXPECT_EQ(session.create(path(i), "0"), path(i));
    for (int last_version = -1; last_version < kLast;) {
      Stat stat{};
      Change& change = changes.emplace_back();
      const std::string value = connected([&] { return session.get(path(i), &stat, &Change::tell, &change); });
      EXPECT_EQ(value, std::to_string(stat.version));
      EXPECT_GT(stat.version, last_version);
      last_version = stat.version;
      if (changes.size() == 1) us.arrive();
      EXPECT_TRUE(last_version == kLast || change.wait(i / 2) == ZOO_CHANGED_EVENT);
    }
  };
  const auto change = [&](Crowd& us, size_t i) {
    const Session session;
    us.arrive();
    EXPECT_TRUE(back.wait());
    for (int value = 1; value <= kLast; ++value) {
      EXPECT_EQ(connected([&] { return session.set(path(i), std::to_string(value)); }), kOk);
    }
  };
  Crowd crowd(workers(), [&](Crowd& us, size_t i) { i % 2 == 0 ? watch(us, i) : change(us, i - 1); });
  crowd.untilAllWait();
  g_server->kill();
  crowd.workersGoOn();
  g_server->start();
  back.set();
}

}  // namespace
}  // namespace sylar::test
