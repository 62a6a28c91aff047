// A module of NSS for tests (nsswitch.conf(5)). It knows one host, server.test at 127.0.0.1, and nothing else. It tells the test
// that it was asked, while libc holds its locks.
#include <netdb.h>
#include <nss.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

extern "C" {

[[gnu::visibility("default")]] void (*nss_sylar_asked)() = nullptr;

// libc passes arguments, which need no names in order to be ignored.
#define SYLAR_KNOWS_NOTHING_(name)                                \
  [[gnu::visibility("default")]] nss_status _nss_sylar_##name() { \
    if (nss_sylar_asked != nullptr) nss_sylar_asked();            \
    return NSS_STATUS_NOTFOUND;                                   \
  }
#define SYLAR_ENTRIES_(kind)             \
  SYLAR_KNOWS_NOTHING_(set##kind##ent)   \
  SYLAR_KNOWS_NOTHING_(get##kind##ent_r) \
  SYLAR_KNOWS_NOTHING_(end##kind##ent)

SYLAR_ENTRIES_(pw)
SYLAR_KNOWS_NOTHING_(getpwnam_r)
SYLAR_KNOWS_NOTHING_(getpwuid_r)
SYLAR_ENTRIES_(gr)
SYLAR_KNOWS_NOTHING_(getgrnam_r)
SYLAR_KNOWS_NOTHING_(getgrgid_r)
SYLAR_KNOWS_NOTHING_(initgroups_dyn)
SYLAR_ENTRIES_(sp)
SYLAR_KNOWS_NOTHING_(getspnam_r)
SYLAR_ENTRIES_(sg)
SYLAR_KNOWS_NOTHING_(getsgnam_r)
SYLAR_ENTRIES_(host)
SYLAR_KNOWS_NOTHING_(gethostbyname_r)
SYLAR_KNOWS_NOTHING_(gethostbyaddr_r)
SYLAR_ENTRIES_(net)
SYLAR_KNOWS_NOTHING_(getnetbyname_r)
SYLAR_KNOWS_NOTHING_(getnetbyaddr_r)
SYLAR_ENTRIES_(proto)
SYLAR_KNOWS_NOTHING_(getprotobyname_r)
SYLAR_KNOWS_NOTHING_(getprotobynumber_r)
SYLAR_ENTRIES_(serv)
SYLAR_KNOWS_NOTHING_(getservbyname_r)
SYLAR_KNOWS_NOTHING_(getservbyport_r)
SYLAR_ENTRIES_(alias)
SYLAR_KNOWS_NOTHING_(getaliasbyname_r)
SYLAR_ENTRIES_(rpc)
SYLAR_KNOWS_NOTHING_(getrpcbyname_r)
SYLAR_KNOWS_NOTHING_(getrpcbynumber_r)
SYLAR_ENTRIES_(netgr)
SYLAR_KNOWS_NOTHING_(gethostton_r)
SYLAR_KNOWS_NOTHING_(getntohost_r)

// getaddrinfo asks the first for addresses of any family, and the second for those of one.

static char server_name[] = "server.test";
static char server_address[] = {127, 0, 0, 1};

[[gnu::visibility("default")]] nss_status _nss_sylar_gethostbyname4_r(const char* name, gaih_addrtuple** result, char* buffer,
                                                                      size_t size, int* error, int* h_error, int32_t*) {
  if (nss_sylar_asked != nullptr) nss_sylar_asked();
  if (std::strcmp(name, server_name) != 0) {
    *h_error = HOST_NOT_FOUND;
    return NSS_STATUS_NOTFOUND;
  }
  if (size < sizeof(gaih_addrtuple)) {
    *error = ERANGE;
    *h_error = NETDB_INTERNAL;
    return NSS_STATUS_TRYAGAIN;
  }
  *result = new (buffer) gaih_addrtuple{nullptr, server_name, AF_INET, {}, 0};
  std::memcpy((*result)->addr, server_address, sizeof server_address);
  return NSS_STATUS_SUCCESS;
}

[[gnu::visibility("default")]] nss_status _nss_sylar_gethostbyname2_r(const char* name, int family, hostent* result, char*,
                                                                      size_t, int*, int* h_error) {
  if (nss_sylar_asked != nullptr) nss_sylar_asked();
  if (family != AF_INET || std::strcmp(name, server_name) != 0) {
    *h_error = HOST_NOT_FOUND;
    return NSS_STATUS_NOTFOUND;
  }
  static char* none[] = {nullptr};
  static char* addresses[] = {server_address, nullptr};
  *result = {server_name, none, AF_INET, sizeof server_address, addresses};
  return NSS_STATUS_SUCCESS;
}

}  // extern "C"
