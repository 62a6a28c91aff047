// Internal. From a head that passed the scan to a request: its parts, and the rules of RFC 9112 about what they say: how the body
// is framed, who the host is, what the target may be.
#pragma once

#include <cstdint>
#include <string_view>

#include "sylar/http/message.h"
#include "sylar/http/verdict.h"

namespace sylar::http {

/// How the body of a request is delimited. Source: RFC 9112 section 6.
struct BodyFraming {
  bool chunked = false;
  uint64_t length = 0;  // when not chunked
  bool awaits_continue = false;
};

class HeadParser {
 public:
  /// Makes `request`, which is as new, of the complete `head` as a HeadScan has found it, and `framing` of its fields. Refused:
  /// 400, 417 or 501. The request copies the head, so nothing refers to it afterwards.
  static Verdict parse(std::string_view head, HttpRequest& request, BodyFraming& framing);
};

}  // namespace sylar::http
