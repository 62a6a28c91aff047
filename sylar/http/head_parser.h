// Internal. Makes a request of a head that passed the scan. It applies the rules of RFC 9112 to the head's parts: how the body is
// framed, which host is meant, and what the target may be.
#pragma once

#include <cstdint>
#include <string_view>

#include "sylar/base/internal.h"
#include "sylar/http/head_scan.h"
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
  /// Returns the list into which a HeadScan puts the fields of `request`, which is as new.
  static FieldList& fields(HttpRequest& request) { return request.m_headers; }
  /// Fills `request`, whose fields() the scan has found, from the complete head in `text`, and `framing` from its fields. Refuses
  /// with 400, 417 or 501. The request copies the head, so nothing refers to it afterwards.
  static Verdict parse(std::string_view text, const HeadScan& scan, HttpRequest& request, BodyFraming& framing);
};

}  // namespace sylar::http::detail
