// Internal. The decision of the protocol about what the peer has sent.
#pragma once

#include <cstdint>

#include "sylar/base/internal.h"
#include "sylar/http/http_names.h"

namespace sylar::http::detail {

/// Says what to do after reading. Only an accepted message may leave the connection in use. After anything else it is closed,
/// with an answer (kRefused) or without one.
struct Verdict {
  enum class Kind : uint8_t {
    kAccepted,  // well formed and complete: handle it
    kRefused,   // answer `status`, then close
    kSilent,    // the peer has sent nothing of a request: end the writing, linger, close
    kGone,      // the peer left, or the connection broke: close
  };

  Kind kind = Kind::kAccepted;
  /// The error to answer when refused; OK otherwise.
  HttpStatus status = HttpStatus::OK;
  /// True if the connection may serve another request after this one.
  bool keep_alive = false;
  /// Why the message was not accepted, for the log. A constant text, never the peer's bytes.
  const char* why = "";

  static constexpr Verdict accepted(bool keep_alive) { return {Kind::kAccepted, HttpStatus::OK, keep_alive, ""}; }
  static constexpr Verdict refused(HttpStatus status, const char* why) { return {Kind::kRefused, status, false, why}; }
  static constexpr Verdict silent(const char* why) { return {Kind::kSilent, HttpStatus::OK, false, why}; }
  static constexpr Verdict gone(const char* why) { return {Kind::kGone, HttpStatus::OK, false, why}; }

  constexpr bool ok() const { return kind == Kind::kAccepted; }
  friend bool operator==(const Verdict& a, const Verdict& b) {
    return a.kind == b.kind && a.status == b.status && a.keep_alive == b.keep_alive;
  }
};

}  // namespace sylar::http::detail
