// Internal. One connection, as OpenSSL has it. No call here waits for the peer.
//
// Thread safety: all calls from any fiber or thread.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "sylar/base/internal.h"
#include "sylar/mutex.h"
#include "sylar/tls/call_tls.h"
#include "sylar/tls/socket_bio.h"
#include "sylar/tls/tls_context_control.h"

namespace sylar::detail {

class TlsConnection {
 public:
  /// The result of one call into OpenSSL.
  struct Step {
    int result = -1;
    int kind = SSL_ERROR_SSL;  ///< as SSL_get_error(3) has it
    int error = 0;             ///< errno, if the kernel refused something
  };

  /// Returns the end of a new connection on `fd`, or null if there is no memory. A client's server must have the certificate of
  /// `host`, if that is not "". Throws std::bad_alloc.
  static std::shared_ptr<TlsConnection> make(const TlsContext& context, int fd, const std::string& host);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  /// Makes one call of OpenSSL's, which `sends` or not. `call(ssl)` returns its result. The descriptor must be the connection's.
  /// Throws std::bad_alloc. May suspend: yes, while another call is made.
  template <class Call>
  Step step(bool sends, Call call) {
    Step step;
    const Mutex::Lock lock(m_mutex);
    if (isBroken()) return step;
    if (sends && hasSaidGoodbye()) return {.kind = SSL_ERROR_SYSCALL, .error = EPIPE};
    callTls([&] {
      begin();
      step.result = call(m_session.ssl.get());
      end(step);
    });
    return step;
  }
  /// Calls `look(ssl)`, which changes nothing, if the handshake was made.
  template <class Look>
  void look(Look look) {
    const Mutex::Lock lock(m_mutex);
    if (!isReady()) return;
    callTls([&] {
      look(m_session.ssl.get());
      begin();
    });
  }

  bool isReady() const { return m_is_ready.load(std::memory_order_acquire); }
  void noteReady() { m_is_ready.store(true, std::memory_order_release); }
  /// Returns true if OpenSSL must not go on: an error was fatal, or a part of a record was given up.
  bool isBroken() const { return m_is_broken.load(std::memory_order_acquire); }
  void breakOff() { m_is_broken.store(true, std::memory_order_release); }
  /// Returns true if bytes of the peer's were taken from the kernel that nobody has received.
  bool holdsBytes() const { return m_holds_bytes.load(std::memory_order_relaxed); }
  /// Returns what OpenSSL said when it last failed.
  std::string error() const;

  /// Says that this end sends no more, if that needs no wait. If the connection is closed then, takes first what would make the
  /// kernel reset it. In a child of a fork says nothing, since the connection is the parent's.
  void sayGoodbye(bool closes);
  bool hasSaidGoodbye() const { return m_said_goodbye.load(std::memory_order_acquire); }
  /// From here on the end of what the kernel has is this end's doing, and no attack.
  void endReads() { m_wire.reads_ended.store(true, std::memory_order_release); }
  bool readsEnded() const { return m_wire.reads_ended.load(std::memory_order_acquire); }

  /// Held over a whole send, because OpenSSL goes on with the same bytes after a wait.
  Mutex& sending() { return m_sending; }
  /// Held over the handshake, of which the peer's last message wakes one who waits for it.
  Mutex& shaking() { return m_shaking; }

 private:
  TlsConnection() = default;
  bool open(const TlsContext& context, const std::string& host);
  /// Leaves no error of another connection's for the next call.
  static void begin();
  void end(Step& step);
  void takeTickets();
  static void noteMessage(int written, int version, int type, const void* bytes, size_t size, SSL* ssl, void* me);

  SocketWire m_wire;
  TlsSession m_session;
  Mutex m_mutex;  // one call into OpenSSL at a time
  Mutex m_sending;
  Mutex m_shaking;
  pid_t m_process = 0;
  bool m_is_client = false;
  std::atomic<bool> m_is_ready{false};
  std::atomic<bool> m_is_broken{false};
  std::atomic<bool> m_said_goodbye{false};
  std::atomic<bool> m_holds_bytes{false};
  uint32_t m_key_updates = 0;  // in the minute that begins at
  int64_t m_minute_ns = 0;
  mutable Spinlock m_error_lock;
  std::string m_error SYLAR_GUARDED_BY(m_error_lock);
};

}  // namespace sylar::detail
