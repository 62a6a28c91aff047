// Names: hosts, services, users, groups and the like, looked up by a helper thread. Source: getaddrinfo(3), gethostbyname(3),
// getservent(3), getpwnam(3), getgrnam(3), resolver(3), nsswitch.conf(5).
#include <arpa/inet.h>
#include <resolv.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <vector>

#include "sylar/fiber_local.h"
#include "sylar/hook/core/offload.h"
#include "sylar/hook/core/real.h"
#include "sylar/sync/blocking.h"

namespace sylar::detail {
namespace {

/// What a program has set in the resolver's state of its thread (_res), for a call on another thread. That thread's own sockets
/// and its memory of resolv.conf stay.
class ResolverSettings {
  using State = struct __res_state;  // resolv.h has a function of this name

 public:
  ResolverSettings() { copy(_res, m_state); }

  /// Makes `call` with these settings, if the program has begun to use the state.
  template <class Call>
  auto use(Call call) const {
    const bool mine = (m_state.options & RES_INIT) != 0 && ((_res.options & RES_INIT) != 0 || res_init() == 0);
    if (!mine) return call();
    State before;
    copy(_res, before);
    copy(m_state, _res);
    _res.options = (_res.options | RES_NORELOAD) & ~static_cast<unsigned long>(RES_STAYOPEN);
    const auto result = call();
    copy(before, _res);
    return result;
  }

 private:
  static void copy(const State& from, State& to) {
    std::memcpy(&to, &from, offsetof(State, __glibc_unused_qhook));
    for (char*& domain : to.dnsrch) {  // the default ones are in defdname
      const auto at = reinterpret_cast<uintptr_t>(domain) - reinterpret_cast<uintptr_t>(from.defdname);
      if (at < sizeof from.defdname) domain = to.defdname + at;
    }
  }

  State m_state{};
};

/// Has a helper thread make a call that has a result or none. _res.res_h_errno is as if it had been made here.
template <class Call>
auto lookUp(Call call) -> decltype(call()) {
  if (!maySuspendHere()) return call();
  if constexpr (std::is_void_v<decltype(call())>) {
    lookUp([&] { return call(), 0; });
  } else {
    const ResolverSettings settings;
    int host_error = _res.res_h_errno;
    const auto result = offload([&] {
      _res.res_h_errno = host_error;
      const auto answer = settings.use(call);
      host_error = _res.res_h_errno;
      return answer;
    });
    _res.res_h_errno = host_error;
    return result;
  }
}

/// A call of getaddrinfo that owns what it uses, so that it may outlast its caller's wait.
class AddressLookup {
 public:
  AddressLookup(const char* host, const char* service, const addrinfo* hints) {
    if (host != nullptr) m_host = host;
    if (service != nullptr) m_service = service;
    if (hints != nullptr) m_hints = *hints;
  }
  ~AddressLookup() {
    if (m_found != nullptr) ::freeaddrinfo(m_found);
  }
  AddressLookup(const AddressLookup&) = delete;
  AddressLookup& operator=(const AddressLookup&) = delete;

  int make() {
    return m_settings.use([this] {
      sys::errnoRef() = m_errno;
      const int answer = real::getaddrinfo(m_host ? m_host->c_str() : nullptr, m_service ? m_service->c_str() : nullptr,
                                           m_hints ? &*m_hints : nullptr, &m_found);
      m_errno = sys::errnoRef();
      return answer;
    });
  }
  /// Hands on what the call, which has ended, has found.
  int end(int answer, addrinfo** result) {
    sys::errnoRef() = m_errno;
    if (answer == 0) *result = std::exchange(m_found, nullptr);
    return answer;
  }

 private:
  std::optional<std::string> m_host;
  std::optional<std::string> m_service;
  std::optional<addrinfo> m_hints;
  const ResolverSettings m_settings;
  addrinfo* m_found = nullptr;
  int m_errno = sys::errnoRef();
};

/// Does what getaddrinfo does, for names. A cancel and the deadline of a scope end the wait and not the lookup.
int getAddresses(const char* host, const char* service, const addrinfo* hints, addrinfo** result) {
  try {
    const auto lookup = std::make_shared<AddressLookup>(host, service, hints);
    const HookPark waiting;
    const int answer = blocking([lookup] { return lookup->make(); });
    waiting.count();
    return lookup->end(answer, result);
  } catch (const std::bad_alloc&) {
    return EAI_MEMORY;
  } catch (const std::system_error& e) {
    if (e.code().value() == EAGAIN) return withoutHooks([=] { return real::getaddrinfo(host, service, hints, result); });
    sys::errnoRef() = e.code().value();
    return EAI_SYSTEM;
  }
}

/// Does what getaddrinfo does, as far as that needs neither files nor servers, else returns EAI_NONAME. Leaves errno alone then.
int getNumbers(const char* host, const char* service, const addrinfo* hints, addrinfo** result) {
  addrinfo numeric{};
  numeric.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG;  // what no hints mean
  if (hints != nullptr) numeric = *hints;
  const int flags = numeric.ai_flags;
  numeric.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
  const int saved_errno = sys::errnoRef();
  const int answer = real::getaddrinfo(host, service, &numeric, result);
  if (answer == EAI_NONAME) sys::errnoRef() = saved_errno;
  for (addrinfo* one = answer == 0 ? *result : nullptr; one != nullptr; one = one->ai_next) one->ai_flags = flags;
  return answer;
}

template <class Function>
struct Signature;
template <class R, class... Arguments>
struct Signature<R(Arguments...)> {
  using Result = R;
  template <size_t i>
  using Argument = std::tuple_element_t<i, std::tuple<Arguments...>>;
  static constexpr size_t kCount = sizeof...(Arguments);
  static constexpr bool kThrowsNothing = false;
};
template <class R, class... Arguments>
struct Signature<R(Arguments...) noexcept> : Signature<R(Arguments...)> {
  static constexpr bool kThrowsNothing = true;
};

/// What a function has found for a fiber, until the fiber asks it again. libc has one place for all, where fibers of one thread
/// would find one another's answers.
template <class Record>
struct Answer {
  Record record{};
  std::vector<char> buffer = std::vector<char>(1024);  // libc's first size
};

/// Does what a function without _r does, by `kTwin`, its form with _r, which takes `kCount` arguments.
template <auto& kTwin, size_t kCount, class Record, class... Key>
Record* answer(Record* (*)(Key...), Key... key) {
  static const FiberLocal<Answer<Record>> s_answers;  // of this function
  try {
    Answer<Record>& mine = *s_answers;
    Record* found = nullptr;
    int host_error = 0;
    const auto ask = [&] {
      if constexpr (kCount == sizeof...(Key) + 5) {
        return kTwin(key..., &mine.record, mine.buffer.data(), mine.buffer.size(), &found, &host_error);
      } else {
        return kTwin(key..., &mine.record, mine.buffer.data(), mine.buffer.size(), &found);
      }
    };
    while (lookUp(ask) == ERANGE) mine.buffer.resize(2 * mine.buffer.size());
    if (host_error != 0) h_errno = host_error;
    return found;
  } catch (const std::bad_alloc&) {
    sys::errnoRef() = ENOMEM;
    return nullptr;
  }
}

/// Returns true if `name` is an address, which libc finds without asking anybody.
bool isAddress(const char* name) {
  in_addr v4;
  in6_addr v6;
  return ::inet_aton(name, &v4) != 0 || ::inet_pton(AF_INET6, name, &v6) == 1;
}

/// The same for a host's name. Without _r libc leaves errno alone if it is an address.
template <auto& kTwin, size_t kCount, class... Key>
hostent* hostAnswer(hostent* (*function)(const char*, Key...), const char* name, Key... key) {
  const int saved_errno = sys::errnoRef();
  hostent* const found = answer<kTwin, kCount>(function, name, key...);
  if (found != nullptr && isAddress(name)) sys::errnoRef() = saved_errno;
  return found;
}

}  // namespace
}  // namespace sylar::detail

using namespace sylar;  // NOLINT: the names below are libc's

#define SYLAR_ARGUMENT_(name, i) Signature<decltype(::name)>::Argument<i> a##i
#define SYLAR_LOOK_UP_(name, parameters, arguments)                                                           \
  Signature<decltype(::name)>::Result name parameters noexcept(Signature<decltype(::name)>::kThrowsNothing) { \
    countCall(Hook::name);                                                                                    \
    return lookUp([=] { return real::name arguments; });                                                      \
  }
#define SYLAR_P1_(name) SYLAR_ARGUMENT_(name, 0)
#define SYLAR_P2_(name) SYLAR_P1_(name), SYLAR_ARGUMENT_(name, 1)
#define SYLAR_P3_(name) SYLAR_P2_(name), SYLAR_ARGUMENT_(name, 2)
#define SYLAR_P4_(name) SYLAR_P3_(name), SYLAR_ARGUMENT_(name, 3)
#define SYLAR_P5_(name) SYLAR_P4_(name), SYLAR_ARGUMENT_(name, 4)
#define SYLAR_P6_(name) SYLAR_P5_(name), SYLAR_ARGUMENT_(name, 5)
#define SYLAR_P7_(name) SYLAR_P6_(name), SYLAR_ARGUMENT_(name, 6)
#define SYLAR_P8_(name) SYLAR_P7_(name), SYLAR_ARGUMENT_(name, 7)
#define SYLAR_LOOK_UP_0_(name) SYLAR_LOOK_UP_(name, (), ())
#define SYLAR_LOOK_UP_1_(name) SYLAR_LOOK_UP_(name, (SYLAR_P1_(name)), (a0))
#define SYLAR_LOOK_UP_2_(name) SYLAR_LOOK_UP_(name, (SYLAR_P2_(name)), (a0, a1))
#define SYLAR_LOOK_UP_3_(name) SYLAR_LOOK_UP_(name, (SYLAR_P3_(name)), (a0, a1, a2))
#define SYLAR_LOOK_UP_4_(name) SYLAR_LOOK_UP_(name, (SYLAR_P4_(name)), (a0, a1, a2, a3))
#define SYLAR_LOOK_UP_5_(name) SYLAR_LOOK_UP_(name, (SYLAR_P5_(name)), (a0, a1, a2, a3, a4))
#define SYLAR_LOOK_UP_6_(name) SYLAR_LOOK_UP_(name, (SYLAR_P6_(name)), (a0, a1, a2, a3, a4, a5))
#define SYLAR_LOOK_UP_7_(name) SYLAR_LOOK_UP_(name, (SYLAR_P7_(name)), (a0, a1, a2, a3, a4, a5, a6))
#define SYLAR_LOOK_UP_8_(name) SYLAR_LOOK_UP_(name, (SYLAR_P8_(name)), (a0, a1, a2, a3, a4, a5, a6, a7))

#define SYLAR_ANSWER_(answer, name, parameters, ...)                                                          \
  Signature<decltype(::name)>::Result name parameters noexcept(Signature<decltype(::name)>::kThrowsNothing) { \
    countCall(Hook::name);                                                                                    \
    if (!maySuspendHere()) return real::name(__VA_ARGS__);                                                    \
    return answer<real::name##_r, Signature<decltype(::name##_r)>::kCount>(&::name, __VA_ARGS__);             \
  }
#define SYLAR_ANSWER_1_(name) SYLAR_ANSWER_(answer, name, (SYLAR_P1_(name)), a0)
#define SYLAR_ANSWER_2_(name) SYLAR_ANSWER_(answer, name, (SYLAR_P2_(name)), a0, a1)
#define SYLAR_ANSWER_3_(name) SYLAR_ANSWER_(answer, name, (SYLAR_P3_(name)), a0, a1, a2)

extern "C" {

SYLAR_ANSWERING_NAME_CALLS_1(SYLAR_ANSWER_1_)
SYLAR_ANSWERING_NAME_CALLS_2(SYLAR_ANSWER_2_)
SYLAR_ANSWERING_NAME_CALLS_3(SYLAR_ANSWER_3_)
SYLAR_ANSWER_(hostAnswer, gethostbyname, (SYLAR_P1_(gethostbyname)), a0)
SYLAR_ANSWER_(hostAnswer, gethostbyname2, (SYLAR_P2_(gethostbyname2)), a0, a1)
SYLAR_NAME_CALLS_0(SYLAR_LOOK_UP_0_)
SYLAR_NAME_CALLS_1(SYLAR_LOOK_UP_1_)
SYLAR_NAME_CALLS_2(SYLAR_LOOK_UP_2_)
SYLAR_NAME_CALLS_3(SYLAR_LOOK_UP_3_)
SYLAR_NAME_CALLS_4(SYLAR_LOOK_UP_4_)
SYLAR_NAME_CALLS_5(SYLAR_LOOK_UP_5_)
SYLAR_NAME_CALLS_6(SYLAR_LOOK_UP_6_)
SYLAR_NAME_CALLS_7(SYLAR_LOOK_UP_7_)
SYLAR_NAME_CALLS_8(SYLAR_LOOK_UP_8_)

// The state of a fiber's thread belongs to all its fibers, so no helper gets it.
int res_nquery(res_state state, const char* name, int kind, int type, unsigned char* answer, int size) noexcept {
  if (state == &_res) return res_query(name, kind, type, answer, size);
  countCall(Hook::res_nquery);
  return lookUp([=] { return real::res_nquery(state, name, kind, type, answer, size); });
}
int res_nsearch(res_state state, const char* name, int kind, int type, unsigned char* answer, int size) noexcept {
  if (state == &_res) return res_search(name, kind, type, answer, size);
  countCall(Hook::res_nsearch);
  return lookUp([=] { return real::res_nsearch(state, name, kind, type, answer, size); });
}
int res_nquerydomain(res_state state, const char* name, const char* domain, int kind, int type, unsigned char* answer,
                     int size) noexcept {
  if (state == &_res) return res_querydomain(name, domain, kind, type, answer, size);
  countCall(Hook::res_nquerydomain);
  return lookUp([=] { return real::res_nquerydomain(state, name, domain, kind, type, answer, size); });
}
int res_nsend(res_state state, const unsigned char* query, int query_size, unsigned char* answer, int size) noexcept {
  if (state == &_res) return res_send(query, query_size, answer, size);
  countCall(Hook::res_nsend);
  return lookUp([=] { return real::res_nsend(state, query, query_size, answer, size); });
}

// What programs call that were linked before glibc 2.34.
#define SYLAR_OLD_NAME_(name) decltype(::name) __##name __attribute__((alias(#name)));
SYLAR_OLD_NAME_(res_query)
SYLAR_OLD_NAME_(res_search)
SYLAR_OLD_NAME_(res_querydomain)
SYLAR_OLD_NAME_(res_send)
SYLAR_OLD_NAME_(res_nquery)
SYLAR_OLD_NAME_(res_nsearch)
SYLAR_OLD_NAME_(res_nquerydomain)
SYLAR_OLD_NAME_(res_nsend)

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** result) {
  countCall(Hook::getaddrinfo);
  if (!maySuspendHere()) return real::getaddrinfo(host, service, hints, result);
  const int answer = getNumbers(host, service, hints, result);
  if (answer != EAI_NONAME) {
    chargeCallHere();
    return answer;
  }
  return getAddresses(host, service, hints, result);
}

int getaddrinfo_a(int mode, gaicb* list[], int count, sigevent* event) {
  countCall(Hook::getaddrinfo_a);
  if (mode != GAI_WAIT) return real::getaddrinfo_a(mode, list, count, event);
  return lookUp([=] { return real::getaddrinfo_a(mode, list, count, event); });
}

}  // extern "C"
