// Internal. Makes a request of a head that passed the scan. It splits the head and applies the rules of RFC 9112 to the parts:
// how the body is framed, which host is meant, and what the target may be.
#pragma once

#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/http/http.h"
#include "sylar/http/verdict.h"

namespace sylar::http::detail {

/// Says how the body of a request is delimited. Source: RFC 9112 section 6.
struct BodyFraming {
  bool chunked = false;
  uint64_t length = 0;  // when not chunked
  bool awaits_continue = false;
};

class HeadParser {
 public:
  /// Fills `request`, which is as new, from the complete `head` that a HeadScan has found, and `framing` from its fields. Refuses
  /// with 400, 417 or 501. The request copies the head, so nothing refers to it afterwards.
  static Verdict parse(std::string_view head, HttpRequest& request, BodyFraming& framing);
};

}  // namespace sylar::http::detail
