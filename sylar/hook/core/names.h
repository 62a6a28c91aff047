// Internal. The functions of libc that look something up by NSS or DNS, by the number of their arguments.
//
// They call modules of NSS, which may be anybody's code, and hold libc's own locks meanwhile. So only the whole can be hooked: a
// fiber that was suspended inside would leave the lock locked.
#pragma once

#include <aliases.h>
#include <grp.h>
#include <gshadow.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pwd.h>
#include <rpc/netdb.h>
#include <shadow.h>
#include <unistd.h>

// resolv.h defines macros with common names, so it is left to those who need it.
extern "C" {
int res_query(const char*, int, int, unsigned char*, int) noexcept;
int res_search(const char*, int, int, unsigned char*, int) noexcept;
int res_querydomain(const char*, const char*, int, int, unsigned char*, int) noexcept;
int res_send(const unsigned char*, int, unsigned char*, int) noexcept;
int res_nquery(struct __res_state*, const char*, int, int, unsigned char*, int) noexcept;
int res_nsearch(struct __res_state*, const char*, int, int, unsigned char*, int) noexcept;
int res_nquerydomain(struct __res_state*, const char*, const char*, int, int, unsigned char*, int) noexcept;
int res_nsend(struct __res_state*, const unsigned char*, int, unsigned char*, int) noexcept;
}

// clang-format off
#define SYLAR_NAME_CALLS_0(X)                                                     \
  X(setpwent) X(getpwent) X(endpwent) X(setgrent) X(getgrent) X(endgrent)         \
  X(setspent) X(getspent) X(endspent) X(setsgent) X(getsgent) X(endsgent)         \
  X(setaliasent) X(getaliasent) X(endaliasent) X(getrpcent) X(endrpcent)          \
  X(gethostent) X(endhostent) X(getnetent) X(endnetent) X(getprotoent) X(endprotoent) \
  X(getservent) X(endservent) X(endnetgrent) X(gethostid)
#define SYLAR_NAME_CALLS_1(X)                                                     \
  X(setrpcent) X(sethostent) X(setnetent) X(setprotoent) X(setservent) X(setnetgrent)
#define SYLAR_NAME_CALLS_2(X) X(ether_ntohost) X(ether_hostton)
#define SYLAR_NAME_CALLS_3(X) X(getnetgrent) X(gai_suspend)
// Those that return an answer of their own, and have a form with _r for that.
#define SYLAR_ANSWERING_NAME_CALLS_1(X)                                           \
  X(getpwnam) X(getpwuid) X(getgrnam) X(getgrgid) X(getspnam) X(getsgnam)         \
  X(getaliasbyname) X(getrpcbyname) X(getrpcbynumber) X(getprotobyname) X(getprotobynumber) \
  X(getnetbyname)
#define SYLAR_ANSWERING_NAME_CALLS_2(X) X(getnetbyaddr) X(getservbyname) X(getservbyport)
#define SYLAR_ANSWERING_NAME_CALLS_3(X) X(gethostbyaddr)
#define SYLAR_NAME_CALLS_4(X)                                                     \
  X(getpwent_r) X(getgrent_r) X(getspent_r) X(getsgent_r) X(getaliasent_r) X(getrpcent_r) \
  X(getprotoent_r) X(getservent_r) X(getgrouplist) X(innetgr) X(res_send)
#define SYLAR_NAME_CALLS_5(X)                                                     \
  X(getpwnam_r) X(getpwuid_r) X(getgrnam_r) X(getgrgid_r) X(getspnam_r) X(getsgnam_r) \
  X(getaliasbyname_r) X(getrpcbyname_r) X(getrpcbynumber_r)                       \
  X(getprotobyname_r) X(getprotobynumber_r) X(getnetgrent_r)                      \
  X(gethostent_r) X(getnetent_r) X(res_query) X(res_search)
#define SYLAR_NAME_CALLS_6(X)                                                     \
  X(gethostbyname_r) X(getnetbyname_r) X(getservbyname_r) X(getservbyport_r)      \
  X(res_querydomain)
#define SYLAR_NAME_CALLS_7(X) X(gethostbyname2_r) X(getnetbyaddr_r) X(getnameinfo)
#define SYLAR_NAME_CALLS_8(X) X(gethostbyaddr_r)

/// All of them, and those that are more than one whole call.
#define SYLAR_NAME_CALLS(X)                                                       \
  SYLAR_NAME_CALLS_0(X) SYLAR_NAME_CALLS_1(X) SYLAR_NAME_CALLS_2(X)               \
  SYLAR_ANSWERING_NAME_CALLS_1(X) SYLAR_ANSWERING_NAME_CALLS_2(X) SYLAR_ANSWERING_NAME_CALLS_3(X) \
  SYLAR_NAME_CALLS_3(X) SYLAR_NAME_CALLS_4(X) SYLAR_NAME_CALLS_5(X)               \
  SYLAR_NAME_CALLS_6(X) SYLAR_NAME_CALLS_7(X) SYLAR_NAME_CALLS_8(X)               \
  X(gethostbyname) X(gethostbyname2) X(getaddrinfo) X(getaddrinfo_a)                 \
  X(res_nquery) X(res_nsearch) X(res_nquerydomain) X(res_nsend)
// clang-format on
