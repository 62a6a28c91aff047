// Lookups of names leave the worker to other fibers, whatever libc's modules do meanwhile.
#include "tests/hook/names/names.h"

#include <functional>

#include "sylar/base/sanitizers.h"
#include "sylar/cancel.h"
#include "sylar/sync/blocking_pool.h"
#include "tests/hook/names/nss_module.h"
#include "tests/sched/gate.h"
#include "tests/sync/waiter.h"

namespace sylar::test {
namespace {

// What the module of NSS does when it is asked: it blocks the thread until the gate is open.
Gate* g_gate = nullptr;
std::atomic<int> g_asked{0};
void waitAtGate() {
  g_asked.fetch_add(1);
  if (g_gate != nullptr) {
    EXPECT_TRUE(g_gate->wait());
  }
}

struct NameCase {
  std::string name;
  std::function<void()> call;
};
std::ostream& operator<<(std::ostream& out, const NameCase& one) { return out << one.name; }

char g_buffer[1024];
int g_h_errno;
const in_addr g_address{htonl(INADDR_LOOPBACK)};

template <class Entry>
struct Room {
  Entry entry;
  Entry* found;
};

/// Calls that ask the module.
std::vector<NameCase> askingCases() {
  constexpr size_t kSize = sizeof g_buffer;
  static Room<passwd> user;
  static Room<group> group;
  static Room<spwd> shadow;
  static Room<sgrp> group_shadow;
  static Room<hostent> host;
  static Room<netent> net;
  static Room<protoent> protocol;
  static Room<servent> service;
  static Room<aliasent> alias;
  static Room<rpcent> rpc;
  static ether_addr ether{};
  static gid_t groups[8];
  static int count = 8;
  static addrinfo* addresses = nullptr;
  [[maybe_unused]] static gaicb request{"host.test", nullptr, nullptr, nullptr, 0, {}};
  [[maybe_unused]] static gaicb* const requests[] = {&request};
  static sockaddr_in address = loopback();
  return {
    {"getpwnam", [] { EXPECT_EQ(::getpwnam("name"), nullptr); }}, {"getpwuid", [] { EXPECT_EQ(::getpwuid(7), nullptr); }},
        {"getpwnam_r", [] { EXPECT_EQ(::getpwnam_r("name", &user.entry, g_buffer, kSize, &user.found), 0); }},
        {"getpwuid_r", [] { EXPECT_EQ(::getpwuid_r(7, &user.entry, g_buffer, kSize, &user.found), 0); }},
        {"getgrnam", [] { EXPECT_EQ(::getgrnam("name"), nullptr); }}, {"getgrgid", [] { EXPECT_EQ(::getgrgid(7), nullptr); }},
        {"getgrnam_r", [] { EXPECT_EQ(::getgrnam_r("name", &group.entry, g_buffer, kSize, &group.found), 0); }},
        {"getgrgid_r", [] { EXPECT_EQ(::getgrgid_r(7, &group.entry, g_buffer, kSize, &group.found), 0); }},
        {"getgrouplist", [] { EXPECT_EQ(::getgrouplist("name", 7, groups, &count), 1); }},
        {"getspnam", [] { EXPECT_EQ(::getspnam("name"), nullptr); }},
        {"getspnam_r",
         [] { EXPECT_EQ((::getspnam_r("name", &shadow.entry, g_buffer, kSize, &shadow.found), shadow.found), nullptr); }},
        {"getsgnam", [] { EXPECT_EQ(::getsgnam("name"), nullptr); }},
        {"getsgnam_r",
         [] {
           EXPECT_EQ((::getsgnam_r("name", &group_shadow.entry, g_buffer, kSize, &group_shadow.found), group_shadow.found),
                     nullptr);
         }},
        {"gethostbyname", [] { EXPECT_EQ(::gethostbyname("host.test"), nullptr); }},
        {"gethostbyname2", [] { EXPECT_EQ(::gethostbyname2("host.test", AF_INET6), nullptr); }},
        {"gethostbyaddr", [] { EXPECT_EQ(::gethostbyaddr(&g_address, sizeof g_address, AF_INET), nullptr); }},
        {"gethostbyname_r",
         [] {
           EXPECT_EQ((::gethostbyname_r("host.test", &host.entry, g_buffer, kSize, &host.found, &g_h_errno), host.found),
                     nullptr);
         }},
        {"gethostbyname2_r",
         [] {
           ::gethostbyname2_r("host.test", AF_INET, &host.entry, g_buffer, kSize, &host.found, &g_h_errno);
           EXPECT_EQ(host.found, nullptr);
         }},
        {"gethostbyaddr_r",
         [] {
           ::gethostbyaddr_r(&g_address, sizeof g_address, AF_INET, &host.entry, g_buffer, kSize, &host.found, &g_h_errno);
           EXPECT_EQ(host.found, nullptr);
         }},
        {"getaddrinfo", [] { EXPECT_EQ(::getaddrinfo("host.test", nullptr, nullptr, &addresses), EAI_NONAME); }},
        {"getnameinfo",
         [] {
           EXPECT_EQ(
               ::getnameinfo(reinterpret_cast<sockaddr*>(&address), sizeof address, g_buffer, kSize, nullptr, 0, NI_NAMEREQD),
               EAI_NONAME);
         }},
#if !defined(SYLAR_TSAN)  // which does not know the threads that libc makes for these, and fails in them
        {"getaddrinfo_a", [] { EXPECT_EQ(::getaddrinfo_a(GAI_WAIT, const_cast<gaicb**>(requests), 1, nullptr), 0); }},
        {"gai_suspend",
         [] {
           EXPECT_EQ(::getaddrinfo_a(GAI_NOWAIT, const_cast<gaicb**>(requests), 1, nullptr), 0);
           const int answer = ::gai_suspend(requests, 1, nullptr);
           EXPECT_TRUE(answer == 0 || answer == EAI_ALLDONE) << answer;  // the helper may come late
           EXPECT_EQ(::gai_error(&request), EAI_NONAME);
         }},
#endif
        {"getnetbyname", [] { EXPECT_EQ(::getnetbyname("net"), nullptr); }},
        {"getnetbyaddr", [] { EXPECT_EQ(::getnetbyaddr(7, AF_INET), nullptr); }},
        {"getnetbyname_r",
         [] { EXPECT_EQ((::getnetbyname_r("net", &net.entry, g_buffer, kSize, &net.found, &g_h_errno), net.found), nullptr); }},
        {"getnetbyaddr_r",
         [] {
           EXPECT_EQ((::getnetbyaddr_r(7, AF_INET, &net.entry, g_buffer, kSize, &net.found, &g_h_errno), net.found), nullptr);
         }},
        {"getprotobyname", [] { EXPECT_EQ(::getprotobyname("p"), nullptr); }},
        {"getprotobynumber", [] { EXPECT_EQ(::getprotobynumber(7), nullptr); }},
        {"getprotobyname_r",
         [] {
           EXPECT_EQ((::getprotobyname_r("p", &protocol.entry, g_buffer, kSize, &protocol.found), protocol.found), nullptr);
         }},
        {"getprotobynumber_r",
         [] {
           EXPECT_EQ((::getprotobynumber_r(7, &protocol.entry, g_buffer, kSize, &protocol.found), protocol.found), nullptr);
         }},
        {"getservbyname", [] { EXPECT_EQ(::getservbyname("s", "tcp"), nullptr); }},
        {"getservbyport", [] { EXPECT_EQ(::getservbyport(7, "tcp"), nullptr); }},
        {"getservbyname_r",
         [] {
           EXPECT_EQ((::getservbyname_r("s", "tcp", &service.entry, g_buffer, kSize, &service.found), service.found), nullptr);
         }},
        {"getservbyport_r",
         [] {
           EXPECT_EQ((::getservbyport_r(7, "tcp", &service.entry, g_buffer, kSize, &service.found), service.found), nullptr);
         }},
        {"getaliasbyname", [] { EXPECT_EQ(::getaliasbyname("a"), nullptr); }},
        {"getaliasbyname_r",
         [] { EXPECT_EQ((::getaliasbyname_r("a", &alias.entry, g_buffer, kSize, &alias.found), alias.found), nullptr); }},
        {"getrpcbyname", [] { EXPECT_EQ(::getrpcbyname("r"), nullptr); }},
        {"getrpcbynumber", [] { EXPECT_EQ(::getrpcbynumber(7), nullptr); }},
        {"getrpcbyname_r",
         [] { EXPECT_EQ((::getrpcbyname_r("r", &rpc.entry, g_buffer, kSize, &rpc.found), rpc.found), nullptr); }},
        {"getrpcbynumber_r",
         [] { EXPECT_EQ((::getrpcbynumber_r(7, &rpc.entry, g_buffer, kSize, &rpc.found), rpc.found), nullptr); }},
        {"ether_hostton", [] { EXPECT_NE(::ether_hostton("e", &ether), 0); }},
        {"ether_ntohost", [] { EXPECT_NE(::ether_ntohost(g_buffer, &ether), 0); }},
        {"innetgr", [] { EXPECT_EQ(::innetgr("group", "host", nullptr, nullptr), 0); }},
  };
}

/// Calls that go through a list, and take the list's lock. `hold` is one of them, in which the module is asked.
struct ListCase {
  std::string name;
  void (*hold)();
  std::vector<NameCase> calls;
};
std::ostream& operator<<(std::ostream& out, const ListCase& one) { return out << one.name; }

template <class Get, class Entry>
NameCase nextOf(const std::string& name, Get get, Room<Entry>& room) {
  return {name, [get, &room] {
            get(&room.entry, g_buffer, sizeof g_buffer, &room.found);
            EXPECT_EQ(room.found, nullptr);
          }};
}

std::vector<ListCase> listCases() {
  static Room<passwd> user;
  static Room<group> group;
  static Room<spwd> shadow;
  static Room<sgrp> group_shadow;
  static Room<hostent> host;
  static Room<netent> net;
  static Room<protoent> protocol;
  static Room<servent> service;
  static Room<aliasent> alias;
  static Room<rpcent> rpc;
  [[maybe_unused]] static char* parts[3];
#define SYLAR_LIST_(kind, set, room)                                                                                            \
  {                                                                                                                             \
    "get" #kind "ent", [] { set; }, {                                                                                           \
      {"set", [] { set; }}, {"get", [] { EXPECT_EQ(::get##kind##ent(), nullptr); }}, nextOf("get_r", ::get##kind##ent_r, room), \
          {"end", [] { ::end##kind##ent(); }},                                                                                  \
    }                                                                                                                           \
  }
  const auto host_r = [](auto... all) { return ::gethostent_r(all..., &g_h_errno); };
  const auto net_r = [](auto... all) { return ::getnetent_r(all..., &g_h_errno); };
  return {
    SYLAR_LIST_(pw, ::setpwent(), user), SYLAR_LIST_(gr, ::setgrent(), group), SYLAR_LIST_(sp, ::setspent(), shadow),
        SYLAR_LIST_(sg, ::setsgent(), group_shadow), SYLAR_LIST_(proto, ::setprotoent(1), protocol),
        SYLAR_LIST_(serv, ::setservent(1), service), SYLAR_LIST_(alias, ::setaliasent(), alias),
        SYLAR_LIST_(rpc, ::setrpcent(1), rpc),
        {"gethostent",
         [] { ::sethostent(1); },
         {{"set", [] { ::sethostent(1); }},
          {"get", [] { EXPECT_EQ(::gethostent(), nullptr); }},
          nextOf("get_r", host_r, host),
          {"end", [] { ::endhostent(); }}}},
        {"getnetent",
         [] { ::setnetent(1); },
         {{"set", [] { ::setnetent(1); }},
          {"get", [] { EXPECT_EQ(::getnetent(), nullptr); }},
          nextOf("get_r", net_r, net),
          {"end", [] { ::endnetent(); }}}},
#if !defined(SYLAR_TSAN)  // which does not see the lock under which libc allocates and frees here
        {"getnetgrent",
         [] { ::setnetgrent("group"); },
         {{"set", [] { EXPECT_EQ(::setnetgrent("group"), 0); }},
          {"get", [] { EXPECT_EQ(::getnetgrent(&parts[0], &parts[1], &parts[2]), 0); }},
          {"get_r", [] { EXPECT_EQ(::getnetgrent_r(&parts[0], &parts[1], &parts[2], g_buffer, sizeof g_buffer), 0); }},
          {"end", [] { ::endnetgrent(); }}}},
#endif
  };
}

/// Runs `call` in a fiber of the only worker, and opens the gate in another one, which comes to run only if the call lets it.
void letsOthersRun(Gate& gate, const std::function<void()>& call) {
  bool open = false;
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      open = true;
      gate.open();
    });
    call();
    EXPECT_TRUE(open);
  });
}

class Names : public testing::Test {
 protected:
  Names() {
    askForNames("sylar");
    whenAsked(&waitAtGate);
    g_asked = 0;
    g_gate = &m_gate;
  }
  ~Names() override {
    BlockingPool::process().endAll();  // a helper whose caller waits no longer may still be on its way to the gate
    g_gate = nullptr;
  }
  Gate m_gate;
};

class AskingNames : public Names, public testing::WithParamInterface<NameCase> {};
INSTANTIATE_TEST_SUITE_P(Of, AskingNames, testing::ValuesIn(askingCases()), [](const auto& one) { return one.param.name; });

TEST_P(AskingNames, LetAnotherFiberOfTheOnlyWorkerRun) {
  letsOthersRun(m_gate, GetParam().call);
  EXPECT_GT(g_asked.load(), 0);
}

class ListedNames : public Names, public testing::WithParamInterface<ListCase> {};
INSTANTIATE_TEST_SUITE_P(Of, ListedNames, testing::ValuesIn(listCases()), [](const auto& one) { return one.param.name; });

// A thread has the lock of the list, because the module does not answer it.
TEST_P(ListedNames, LetAnotherFiberOfTheOnlyWorkerRun) {
  for (const NameCase& one : GetParam().calls) {
    SCOPED_TRACE(one.name);
    Gate gate;
    g_gate = &gate;
    g_asked = 0;
    std::thread holder(GetParam().hold);
    while (g_asked.load() == 0) std::this_thread::yield();
    letsOthersRun(gate, one.call);
    holder.join();
  }
}

// Modules make hooked calls (libnss_systemd does: connect, poll, recv). If one was suspended, the next fiber of its worker would
// wait for libc's lock without end, and with it the worker.
TEST_F(Names, AskedByManyFibersOfOneWorkerDoNotWaitForEachOther) {
  constexpr int kFibers = 100;  // more than the pool has threads
  static Pair* pair = nullptr;
  Pair bytes = pipePair();
  pair = &bytes;
  whenAsked([] {
    char byte;
    EXPECT_EQ(::read(pair->a, &byte, 1), 1);
  });
  std::atomic<int> ended{0};
  bool ticked = false;
  inFiber([&] {
    for (int i = 0; i < kFibers; ++i) {
      IOManager::GetThis()->schedule([&, i] {
        addrinfo* none = nullptr;
        if (i % 2 == 0) {
          EXPECT_EQ(::getpwnam("name"), nullptr);
        } else {
          EXPECT_EQ(::getaddrinfo("host.test", nullptr, nullptr, &none), EAI_NONAME);
        }
        ended.fetch_add(1);
      });
    }
    IOManager::GetThis()->schedule([&] {
      ticked = true;
      EXPECT_EQ(ended.load(), 0);
      const std::string all(kFibers, 'x');
      EXPECT_EQ(::write(bytes.b, all.data(), all.size()), ssize_t(all.size()));
    });
  });
  EXPECT_TRUE(ticked);
  EXPECT_EQ(ended.load(), kFibers);
}

// With the pool at its limits the call is made on the worker, and what the module calls does not suspend it there.
TEST_F(Names, AreLookedUpByTheWorkerItselfWhenThePoolIsFull) {
  static Pair* pair = nullptr;
  Pair bytes = pipePair();
  pair = &bytes;
  static std::atomic<pid_t> asker{0};
  whenAsked([] {
    asker = threadId();
    g_asked.fetch_add(1);
    char byte;
    EXPECT_EQ(::read(pair->a, &byte, 1), 1);
  });
  BlockingPool::process().setLimits({.max_threads = 1, .max_queued = 0});
  std::thread outside([&] {
    for (const int times : {1, 2}) {
      while (g_asked.load() < times) std::this_thread::yield();
      EXPECT_EQ(::write(bytes.b, "x", 1), 1);
    }
    m_gate.open();
  });
  bool other = false;
  std::atomic<bool> held{false};
  inFiber([&] {
    IOManager::GetThis()->schedule([&] {
      EXPECT_EQ(BlockingPool::process().run([&] {
        held = true;
        EXPECT_TRUE(m_gate.wait());
      }),
                0);
    });
    while (!held) Fiber::YieldToReady();  // then it has the only thread of the pool
    IOManager::GetThis()->schedule([&] { other = true; });
    EXPECT_EQ(::getpwnam("name"), nullptr);
    EXPECT_EQ(asker.load(), threadId());
    EXPECT_FALSE(other);
    addrinfo* none = nullptr;
    EXPECT_EQ(::getaddrinfo("host.test", nullptr, nullptr, &none), EAI_NONAME);
    EXPECT_FALSE(other);
    EXPECT_TRUE(is_hook_enable());
  });
  outside.join();
  BlockingPool::process().setLimits({});
}

// ---- The end of a wait. ------------------------------------------------------------------------------------------------------

TEST_F(Names, AnAddressIsNoLongerWaitedForAfterACancel) {
  std::stop_source stop;
  IOManager iom(1, false, "cancel");
  const Fiber::ptr fiber = waiterOn(iom, [&] {
    withCancel(stop.get_token(), [] {
      std::string host = "host.test";  // gone before the lookup ends
      addrinfo hints{};
      addrinfo* result = nullptr;
      EXPECT_EQ(::getaddrinfo(host.c_str(), nullptr, &hints, &result), EAI_SYSTEM);
      EXPECT_EQ(errno, ECANCELED);
      EXPECT_EQ(::getaddrinfo(host.c_str(), nullptr, &hints, &result), EAI_SYSTEM);
      EXPECT_EQ(errno, ECANCELED);
      EXPECT_EQ(result, nullptr);
      EXPECT_EQ(::getaddrinfo("127.0.0.1", "80", &hints, &result), 0) << "it needs no waiting";
      ::freeaddrinfo(result);
    });
  });
  while (g_asked.load() == 0) std::this_thread::yield();
  stop.request_stop();
  fiber->join();
  EXPECT_EQ(g_asked.load(), 1) << "a fiber that was cancelled before does not ask";
  m_gate.open();
}

TEST_F(Names, AnAddressIsNoLongerWaitedForAfterTheDeadline) {
  inFiber([&] {
    withDeadline(Deadline::after(std::chrono::milliseconds(5)), [] {
      addrinfo* result = nullptr;
      EXPECT_EQ(::getaddrinfo("host.test", "http", nullptr, &result), EAI_SYSTEM);
      EXPECT_EQ(errno, ETIMEDOUT);
    });
    m_gate.open();
  });
}

TEST_F(Names, WithHooksOffBlockTheOnlyWorker) {
  bool other = false;
  std::thread outside([&] {
    while (g_asked.load() == 0) std::this_thread::yield();
    m_gate.open();
  });
  inFiber([&] {
    set_hook_enable(false);
    IOManager::GetThis()->schedule([&] { other = true; });
    EXPECT_EQ(::getpwnam("name"), nullptr);
    EXPECT_FALSE(other);
  });
  outside.join();
}

// ---- DNS. --------------------------------------------------------------------------------------------------------------------

using Query = int (*)(unsigned char* answer, int size);
unsigned char g_query[512];
int g_query_size = 0;

/// Queries through the state of the thread, which are answered by a fiber of the same worker.
TEST(Dns, AQueryLetsTheServersFiberRunAndUsesTheStateOfTheThread) {
  const std::pair<const char*, Query> queries[] = {
      {"res_query", [](auto* answer, int size) { return ::res_query("host.test", ns_c_in, ns_t_a, answer, size); }},
      {"res_search", [](auto* answer, int size) { return ::res_search("host.test", ns_c_in, ns_t_a, answer, size); }},
      {"res_querydomain",
       [](auto* answer, int size) { return ::res_querydomain("host", "test", ns_c_in, ns_t_a, answer, size); }},
      {"res_send", [](auto* answer, int size) { return ::res_send(g_query, g_query_size, answer, size); }},
      {"res_nquery", [](auto* answer, int size) { return ::res_nquery(&_res, "host.test", ns_c_in, ns_t_a, answer, size); }},
      {"res_nsearch", [](auto* answer, int size) { return ::res_nsearch(&_res, "host.test", ns_c_in, ns_t_a, answer, size); }},
      {"res_nquerydomain",
       [](auto* answer, int size) { return ::res_nquerydomain(&_res, "host", "test", ns_c_in, ns_t_a, answer, size); }},
      {"res_nsend", [](auto* answer, int size) { return ::res_nsend(&_res, g_query, g_query_size, answer, size); }},
  };
  g_query_size = ::res_mkquery(ns_o_query, "host.test", ns_c_in, ns_t_a, nullptr, 0, nullptr, g_query, sizeof g_query);
  ASSERT_GT(g_query_size, 12);
  for (const auto& [name, query] : queries) {
    SCOPED_TRACE(name);
    inFiber([query = query] {
      const int server = boundSocket(hookedCalls(), SOCK_DGRAM);
      askServer(addressOf(server));
      IOManager::GetThis()->schedule([server] { answerOne(server, 7); });
      unsigned char answer[512];
      const int size = query(answer, sizeof answer);
      ASSERT_GT(size, 16);
      EXPECT_EQ(answer[size - 1], 7);
      ::close(server);
    });
  }
  BlockingPool::process().endAll();
}

/// Returns the last byte of the address of "host.test", -1 if it has none.
int lookUpByDns() {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* result = nullptr;
  if (::getaddrinfo("host.test", nullptr, &hints, &result) != 0) return -1;
  const auto address = ntohl(reinterpret_cast<const sockaddr_in*>(result->ai_addr)->sin_addr.s_addr);
  ::freeaddrinfo(result);
  return static_cast<int>(address & 0xff);
}

TEST(Dns, EachWorkerAsksItsOwnServers) {
  askForNames("dns");
  for (const int last : {1, 2}) {  // by the same helper thread
    inFiber([&] {
      const int server = boundSocket(hookedCalls(), SOCK_DGRAM);
      askServer(addressOf(server));
      IOManager::GetThis()->schedule([=] { answerOne(server, static_cast<char>(last)); });
      EXPECT_EQ(lookUpByDns(), last);
      ::close(server);
    });
  }
  BlockingPool::process().endAll();
}

// It may be asked next by somebody who has set nothing.
TEST(Dns, TheHelpersOwnStateIsAsBefore) {
  askForNames("dns");
  BlockingPool::process().setLimits({.max_threads = 1});
  inFiber([&] {
    const auto state_of_helper = [](bool first) {
      std::string state;
      const auto look = [&] {
        if (first) {
          EXPECT_EQ(res_init(), 0);
        }
        state =
            std::string(reinterpret_cast<const char*>(&_res.nsaddr_list[0]), sizeof(sockaddr_in)) + std::to_string(_res.options);
      };
      EXPECT_EQ(BlockingPool::process().run(look), 0);
      return state;
    };
    const std::string before = state_of_helper(true);
    const int server = boundSocket(hookedCalls(), SOCK_DGRAM);
    askServer(addressOf(server));
    IOManager::GetThis()->schedule([=] { answerOne(server, 7); });
    EXPECT_EQ(lookUpByDns(), 7);
    EXPECT_EQ(state_of_helper(false), before);
    ::close(server);
  });
  BlockingPool::process().setLimits({});
  BlockingPool::process().endAll();
}

// As those of two threads do not either. The two have one state, since they run as their worker.
TEST(Dns, QueriesOfTwoFibersThroughTheStateOfTheirThreadDoNotMeet) {
  IOManager iom({.threads = 1, .use_caller = false, .name = "dns", .identity = FiberIdentity::kWorker});
  iom.schedule([] {
    const int server = boundSocket(hookedCalls(), SOCK_DGRAM);
    askServer(addressOf(server));
    IOManager::GetThis()->schedule([=] {
      unsigned char answer[512];
      const int size = ::res_nquery(&_res, "two.test", ns_c_in, ns_t_a, answer, sizeof answer);
      ASSERT_GT(size, 16);
      EXPECT_EQ(answer[size - 1], 2);
    });
    IOManager::GetThis()->schedule([=] {
      char queries[2][512];
      sockaddr_in from[2];
      ssize_t sizes[2];
      for (const size_t i : {0, 1}) {  // both wait
        socklen_t from_size = sizeof from[i];
        sizes[i] = ::recvfrom(server, queries[i], 512, 0, reinterpret_cast<sockaddr*>(&from[i]), &from_size);
        ASSERT_GT(sizes[i], 12);
      }
      for (const size_t i : {1, 0}) {
        const std::string query(queries[i], static_cast<size_t>(sizes[i]));
        const std::string answer = answerTo(query, query.substr(13, 3) == "two" ? 2 : 1);
        EXPECT_EQ(::sendto(server, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from[i]), sizeof from[i]),
                  ssize_t(answer.size()));
      }
    });
    unsigned char answer[512];
    const int size = ::res_nquery(&_res, "one.test", ns_c_in, ns_t_a, answer, sizeof answer);
    ASSERT_GT(size, 16);
    EXPECT_EQ(answer[size - 1], 1);
    ::close(server);
  });
  iom.stop();
  BlockingPool::process().endAll();
}

TEST(Dns, ErrorsAreThoseOfTheCaller) {
  askForNames("dns");
  inFiber([] {
    const int server = boundSocket(hookedCalls(), SOCK_DGRAM);
    askServer(addressOf(server));
    IOManager::GetThis()->schedule([=] { answerOne(server, 7); });
    h_errno = NETDB_SUCCESS;
    unsigned char answer[512];
    EXPECT_EQ(::res_query("host.test", ns_c_in, ns_t_mx, answer, sizeof answer), -1);
    EXPECT_EQ(h_errno, NO_DATA);
    EXPECT_EQ(_res.res_h_errno, NO_DATA);
    ::close(server);
  });
  BlockingPool::process().endAll();
}

}  // namespace
}  // namespace sylar::test
