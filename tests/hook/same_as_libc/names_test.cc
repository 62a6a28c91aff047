// Hooked against raw: lookups of names in this host's files.
#include "tests/hook/names/names.h"

#include "tests/hook/same_as_libc/same_as_libc.h"

namespace sylar::test {
namespace {

std::string textOf(const char* text) { return text == nullptr ? "null" : text; }
std::string textOf(const passwd* one) {
  return one == nullptr ? "null" : textOf(one->pw_name) + ' ' + std::to_string(one->pw_uid) + ' ' + textOf(one->pw_dir);
}
std::string textOf(const group* one) {
  return one == nullptr ? "null" : textOf(one->gr_name) + ' ' + std::to_string(one->gr_gid);
}
std::string textOf(const servent* one) {
  return one == nullptr ? "null" : textOf(one->s_name) + ' ' + std::to_string(ntohs(static_cast<uint16_t>(one->s_port)));
}
std::string textOf(const protoent* one) {
  return one == nullptr ? "null" : textOf(one->p_name) + ' ' + std::to_string(one->p_proto);
}
std::string textOf(const netent* one) { return one == nullptr ? "null" : textOf(one->n_name) + ' ' + std::to_string(one->n_net); }
std::string textOf(const rpcent* one) { return one == nullptr ? "null" : textOf(one->r_name); }
std::string textOf(const hostent* one) {
  if (one == nullptr) return "null, h_errno " + std::to_string(h_errno);
  std::string text = textOf(one->h_name);
  for (char** address = one->h_addr_list; *address != nullptr; ++address) {
    char buffer[INET6_ADDRSTRLEN];
    text += ' ' + textOf(::inet_ntop(one->h_addrtype, *address, buffer, sizeof buffer));
  }
  return text;
}

/// Writes down what a lookup gives that sets errno (or not).
#define SYLAR_NOTE_(name, ...)                                           \
  do {                                                                   \
    errno = ENOTTY;                                                      \
    h_errno = NETDB_SUCCESS;                                             \
    const auto found = run.call.name(__VA_ARGS__);                       \
    const int error = errno;                                             \
    run.note(#name, textOf(found) + ", errno " + std::to_string(error)); \
  } while (false)

/// The same for the forms with a buffer.
#define SYLAR_NOTE_R_(Entry, name, room, ...)                                                   \
  do {                                                                                          \
    Entry entry{};                                                                              \
    Entry* found = nullptr;                                                                     \
    std::vector<char> buffer(room);                                                             \
    const int error = run.call.name(__VA_ARGS__, &entry, buffer.data(), buffer.size(), &found); \
    run.note(#name, std::to_string(error) + ' ' + textOf(found));                               \
  } while (false)

void users(Run& run) {
  SYLAR_NOTE_(getpwnam, "root");
  SYLAR_NOTE_(getpwnam, "nobody at all");
  SYLAR_NOTE_(getpwuid, 0);
  SYLAR_NOTE_(getpwuid, 4'000'000'000);
  SYLAR_NOTE_R_(passwd, getpwnam_r, 1024, "root");
  SYLAR_NOTE_R_(passwd, getpwnam_r, 4, "root");
  SYLAR_NOTE_R_(passwd, getpwnam_r, 1024, "nobody at all");
  SYLAR_NOTE_R_(passwd, getpwuid_r, 1024, 0);
  run.call.setpwent();
  for (const passwd* one; (one = run.call.getpwent()) != nullptr;) run.note("getpwent", textOf(one));
  run.call.endpwent();
}

void groups(Run& run) {
  SYLAR_NOTE_(getgrnam, "root");
  SYLAR_NOTE_(getgrnam, "nobody at all");
  SYLAR_NOTE_(getgrgid, 0);
  SYLAR_NOTE_R_(group, getgrnam_r, 1024, "root");
  SYLAR_NOTE_R_(group, getgrgid_r, 2, 0);
  run.call.setgrent();
  for (const group* one; (one = run.call.getgrent()) != nullptr;) run.note("getgrent", textOf(one));
  run.call.endgrent();
  for (int count : {16, 0}) {
    gid_t all[16];
    run.got("getgrouplist", run.call.getgrouplist("root", 7, all, &count));
    run.note("groups", std::to_string(count));
  }
}

void services(Run& run) {
  SYLAR_NOTE_(getservbyname, "http", "tcp");
  SYLAR_NOTE_(getservbyname, "http", "no protocol");
  SYLAR_NOTE_(getservbyport, htons(22), nullptr);
  SYLAR_NOTE_R_(servent, getservbyname_r, 1024, "http", "tcp");
  SYLAR_NOTE_R_(servent, getservbyport_r, 1024, htons(80), "tcp");
  SYLAR_NOTE_(getprotobyname, "tcp");
  SYLAR_NOTE_(getprotobyname, "no protocol");
  SYLAR_NOTE_(getprotobynumber, 17);
  SYLAR_NOTE_R_(protoent, getprotobyname_r, 1024, "tcp");
  SYLAR_NOTE_R_(protoent, getprotobynumber_r, 1, 17);
  SYLAR_NOTE_(getnetbyname, "loopback");
  SYLAR_NOTE_(getnetbyaddr, 127, AF_INET);
  SYLAR_NOTE_(getrpcbyname, "portmapper");
  SYLAR_NOTE_(getrpcbynumber, 100000);
  run.call.setservent(1);
  for (int i = 0; i < 3; ++i) SYLAR_NOTE_(getservent);
  run.call.endservent();
  run.call.setprotoent(1);
  for (int i = 0; i < 3; ++i) SYLAR_NOTE_(getprotoent);
  run.call.endprotoent();
}

void hosts(Run& run) {
  const in_addr loopback_address{htonl(INADDR_LOOPBACK)};
  SYLAR_NOTE_(gethostbyname, "localhost");
  SYLAR_NOTE_(gethostbyname, "127.0.0.1");
  SYLAR_NOTE_(gethostbyname, "no.such.host");
  SYLAR_NOTE_(gethostbyname2, "::1", AF_INET6);
  SYLAR_NOTE_(gethostbyname2, "localhost", 77);
  SYLAR_NOTE_(gethostbyaddr, &loopback_address, sizeof loopback_address, AF_INET);
  SYLAR_NOTE_(gethostbyaddr, &loopback_address, 3, AF_INET);
  for (const char* name : {"localhost", "no.such.host"}) {
    for (const size_t size : {size_t{1024}, size_t{8}}) {
      hostent entry{};
      hostent* found = nullptr;
      std::vector<char> buffer(size);
      int error = 0;
      const int result = run.call.gethostbyname_r(name, &entry, buffer.data(), size, &found, &error);
      run.note("gethostbyname_r", std::to_string(result) + ' ' + std::to_string(error) + ' ' + (found ? textOf(found) : ""));
      h_errno = NETDB_SUCCESS;  // some pass its address
      run.call.gethostbyname_r(name, &entry, buffer.data(), size, &found, &h_errno);
      run.note("h_errno", std::to_string(h_errno));
    }
  }
  run.call.sethostent(0);
  SYLAR_NOTE_(gethostent);
  run.call.endhostent();
}

void addresses(Run& run) {
  const auto look_up = [&run](const char* host, const char* service, const addrinfo* hints) {
    addrinfo* list = nullptr;
    const int answer = run.call.getaddrinfo(host, service, hints, &list);
    run.note("getaddrinfo " + textOf(host) + ' ' + textOf(service), std::to_string(answer));
    for (const addrinfo* one = list; answer == 0 && one != nullptr; one = one->ai_next) {
      char name[64];
      char port[16];
      EXPECT_EQ(::getnameinfo(one->ai_addr, one->ai_addrlen, name, 64, port, 16, NI_NUMERICHOST | NI_NUMERICSERV), 0);
      run.note(name, std::string(port) + ' ' + std::to_string(one->ai_socktype) + ' ' + std::to_string(one->ai_protocol) + ' ' +
                         std::to_string(one->ai_flags) + ' ' + textOf(one->ai_canonname));
    }
    if (answer == 0) ::freeaddrinfo(list);
  };
  const char* const names[] = {nullptr, "localhost", "127.0.0.1", "127.1", "::1", "fe80::1%lo", "no.such.host", ""};
  const char* const ports[] = {nullptr, "80", "http", "no such service", "99999", ""};
  const int flags[] = {0,          AI_PASSIVE, AI_NUMERICHOST, AI_NUMERICSERV, AI_CANONNAME, AI_V4MAPPED | AI_ALL, AI_ADDRCONFIG,
                       0x4000'0000};
  for (const char* name : names) {
    for (const char* port : ports) {
      look_up(name, port, nullptr);
      for (const int flag : flags) {
        for (const int family : {AF_UNSPEC, AF_INET, AF_INET6}) {
          addrinfo hints{};
          hints.ai_flags = flag;
          hints.ai_family = family;
          hints.ai_socktype = SOCK_STREAM;
          look_up(name, port, &hints);
        }
      }
    }
  }
  addrinfo wrong{};
  wrong.ai_family = 77;
  look_up("localhost", "80", &wrong);
  wrong = {};
  wrong.ai_socktype = 77;
  look_up("localhost", "80", &wrong);
}

void namesOfAddresses(Run& run) {
  sockaddr_in address = loopback(80);
  const auto look_up = [&](socklen_t size, socklen_t room, int flags) {
    char host[64] = "-";
    char service[64] = "-";
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    const int answer = run.call.getnameinfo(generic, size, host, room, service, sizeof service, flags);
    run.note("getnameinfo", std::to_string(answer) + ' ' + host + ' ' + service);
  };
  look_up(sizeof address, 64, 0);
  look_up(sizeof address, 64, NI_NUMERICHOST | NI_NUMERICSERV);
  look_up(sizeof address, 64, NI_NAMEREQD);
  look_up(sizeof address, 2, 0);
  look_up(3, 64, 0);
  look_up(sizeof address, 64, 0x4000'0000);
  address.sin_addr.s_addr = htonl(0x7f000063);
  look_up(sizeof address, 64, NI_NAMEREQD);
}

class Names : public SameAsLibc {};

TEST_P(Names, InEveryWay) {
  askForNames("files");
  compare(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Of, Names,
                         testing::Values(Case{"users", users}, Case{"groups", groups}, Case{"services", services},
                                         Case{"hosts", hosts}, Case{"addresses", addresses},
                                         Case{"namesOfAddresses", namesOfAddresses}),
                         nameOf);

// Cause: the answer lay in libc's one place for all, where another fiber's lookup overwrote it before this fiber ran again.
TEST(ALookupWithoutR, GivesEachFiberItsOwnAnswer) {
  inFiber([] {
    const passwd* const root = ::getpwnam("root");
    ASSERT_NE(root, nullptr);
    const servent* const http = ::getservbyname("http", "tcp");
    const hostent* const here = ::gethostbyname("127.0.0.1");
    ASSERT_NE(here, nullptr);
    const auto other = std::make_shared<Fiber>([&] {
      const passwd* const nobody = ::getpwnam("nobody");
      ASSERT_NE(nobody, nullptr);
      EXPECT_NE(nobody, root);
      EXPECT_STREQ(nobody->pw_name, "nobody");
      ::getservbyname("ssh", "tcp");
      EXPECT_NE(::gethostbyname("127.0.0.2"), here);
    });
    IOManager::GetThis()->schedule(other);
    other->join();
    EXPECT_STREQ(root->pw_name, "root");
    EXPECT_STREQ(here->h_name, "127.0.0.1");
    if (http != nullptr) {
      EXPECT_STREQ(http->s_name, "http");
    }
    EXPECT_NE(::getpwuid(0), root) << "each function has a place of its own";
    EXPECT_STREQ(root->pw_name, "root");
    EXPECT_EQ(::getpwnam("root"), root) << "and keeps it";
  });
}

}  // namespace
}  // namespace sylar::test
