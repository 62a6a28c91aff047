// For the tests of lookups: whom libc asks, and a server for DNS.
#pragma once

#include <nss.h>
#include <resolv.h>

#include "sylar/hook/core/names.h"
#include "tests/hook/support.h"

namespace sylar::test {

/// Makes libc ask `sources` (nsswitch.conf(5)) for names of every kind. For the whole process, so that no test asks a real server.
inline void askForNames(const char* sources) {
  for (const char* kind : {"passwd", "group", "shadow", "gshadow", "initgroups", "hosts", "networks", "protocols", "services",
                           "aliases", "rpc", "netgroup", "ethers"}) {
    EXPECT_EQ(__nss_configure_lookup(kind, sources), 0) << kind;
  }
}

/// Has the resolver of the calling thread ask `server`, once: on a busy machine that may take its time.
inline void askServer(const sockaddr_in& server) {
  EXPECT_EQ(res_init(), 0);
  _res.nscount = 1;
  _res.nsaddr_list[0] = server;
  _res.retrans = 60;  // seconds
  _res.options &= ~static_cast<unsigned long>(RES_DNSRCH | RES_DEFNAMES);
}

/// Makes the answer to a query of DNS (RFC 1035): for an address the address `last` of the loopback network, else nothing.
inline std::string answerTo(const std::string& query, char last) {
  std::string answer = query;
  const bool for_address = query[query.size() - 3] == 1;  // the type is before the class, both of two bytes
  answer[2] = static_cast<char>(0x81);                    // a response, recursion desired
  answer[3] = static_cast<char>(0x80);                    // recursion available, no error
  answer[7] = for_address;                                // number of answers
  if (for_address) answer += std::string("\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0", 15) + last;
  return answer;
}

/// Waits for a query at the socket `server`, and answers it by `last`. In fibers the worker goes on.
inline void answerOne(int server, char last) {
  char query[512];
  sockaddr_in from{};
  socklen_t from_size = sizeof from;
  const ssize_t size = ::recvfrom(server, query, sizeof query, 0, reinterpret_cast<sockaddr*>(&from), &from_size);
  ASSERT_GT(size, 12);
  const std::string answer = answerTo(std::string(query, static_cast<size_t>(size)), last);
  EXPECT_EQ(::sendto(server, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), from_size),
            ssize_t(answer.size()));
}

}  // namespace sylar::test
