#include "sylar/http/head_parser.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "sylar/http/char_class.h"
#include "sylar/http/field_list_control.h"

namespace sylar::http::detail {
namespace {

constexpr Verdict bad(const char* why) { return Verdict::refused(HttpStatus::BAD_REQUEST, why); }

// Calls `use` with each element of a comma-separated list, without the blanks around it, until `use` returns false. Returns true
// if it never did.
template <class Use>
bool eachElement(std::string_view list, Use use) {
  for (;;) {
    const size_t comma = list.find(',');
    if (!use(trimmed(list.substr(0, comma)))) return false;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

// The fields with a meaning for the protocol, collected from the head.
struct KnownFields {
  int hosts = 0;
  std::string_view host;
  int lengths = 0;
  std::string_view length;
  int codings = 0;
  std::string_view coding;
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
  bool websocket = false;
  bool expects_continue = false;
  bool expects_other = false;

  /// Returns false if a list of options is malformed.
  bool take(const Field& field);
  bool takeOptions(std::string_view options);
};

bool KnownFields::takeOptions(std::string_view options) {
  return eachElement(options, [this](std::string_view option) {
    close |= equalsIgnoreCase(option, "close");
    keep_alive |= equalsIgnoreCase(option, "keep-alive");
    upgrade |= equalsIgnoreCase(option, "upgrade");
    return option.empty() || allChars(option, kTokenChar);
  });
}

bool KnownFields::take(const Field& field) {
  const auto [name, value] = field;
  const auto is = [&field](std::string_view known) { return equalsIgnoreCase(field.name, known); };
  switch (name.size()) {
    case 4:
      if (!is("host")) break;
      ++hosts;
      host = value;
      break;
    case 6:
      if (is("expect")) (equalsIgnoreCase(value, "100-continue") ? expects_continue : expects_other) = true;
      break;
    case 7: websocket |= is("upgrade") && equalsIgnoreCase(value, "websocket"); break;
    case 10: return !is("connection") || takeOptions(value);
    case 14:
      if (!is("content-length")) break;
      ++lengths;
      length = value;
      break;
    case 16: return !is("proxy-connection") || KnownFields().takeOptions(value);
    case 17:
      if (!is("transfer-encoding")) break;
      ++codings;
      coding = value;
      break;
    default: break;
  }
  return true;
}

// Accepts digits only, and at most 2^63 - 1.
std::optional<uint64_t> parseLength(std::string_view text) {
  if (!allChars(text, kDigit) || text.size() > 19) return std::nullopt;
  uint64_t value = 0;  // 19 digits always fit
  for (char c : text) value = 10 * value + static_cast<uint64_t>(c - '0');
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return value;
}

// Only chunked is supported. Another well-formed coding is answered with 501, an ambiguous one with 400.
Verdict checkCoding(std::string_view codings) {
  int chunked = 0;
  bool others = false, last_is_chunked = false;
  const bool well_formed = eachElement(codings, [&](std::string_view coding) {
    last_is_chunked = equalsIgnoreCase(coding, "chunked");
    chunked += last_is_chunked;
    others |= !last_is_chunked;
    return allChars(coding, kTokenChar);
  });
  if (!well_formed || chunked > 1 || (chunked == 1 && !last_is_chunked)) return bad("transfer-encoding malformed");
  if (others) return Verdict::refused(HttpStatus::NOT_IMPLEMENTED, "unknown transfer-encoding");
  return Verdict::accepted(true);
}

Verdict checkFraming(const KnownFields& known, bool is_11, BodyFraming& framing) {
  if (known.codings > 0 && known.lengths > 0) return bad("content-length with transfer-encoding");
  if (known.lengths > 1) return bad("several content-lengths");
  if (known.lengths == 1) {
    const auto length = parseLength(known.length);
    if (!length) return bad("content-length malformed");
    framing.length = *length;
  }
  if (known.codings == 0) return Verdict::accepted(true);
  if (!is_11) return bad("transfer-encoding in HTTP/1.0");
  if (known.codings > 1) return bad("several transfer-encodings");
  framing.chunked = true;
  return checkCoding(known.coding);
}

// Returns true for host [ ":" port ], where the host is a name, an IPv4 address or an IPv6 address in brackets.
bool isAuthority(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  if (text.starts_with('[')) {
    at = std::find_if_not(at + 1, end, [](char c) { return isChar(c, kHexDigit) || c == ':' || c == '.'; });
    if (at == end || *at != ']' || at == text.data() + 1) return false;
    ++at;
  } else {
    at = skipChars(at, end, kHostChar);
    if (at == text.data()) return false;
  }
  if (at == end) return true;
  if (*at != ':' || end - at < 2 || end - at > 6) return false;
  unsigned port = 0;
  while (++at != end && isChar(*at, kDigit)) port = 10 * port + static_cast<unsigned>(*at - '0');
  return at == end && port <= 65535;
}

// The parts of a request target: its host, if it names one, and what follows. Source: RFC 9112 section 3.2.
struct Target {
  std::string_view authority, path, query;
};

std::optional<Target> splitTarget(std::string_view target, HttpMethod method) {
  Target parts;
  static constexpr std::string_view kScheme = "http://";
  if (target.starts_with('/')) {
    // The usual form: all of it is path and query.
  } else if (equalsIgnoreCase(target.substr(0, kScheme.size()), kScheme)) {
    target.remove_prefix(kScheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    parts.authority = target.substr(0, end);
    if (!isAuthority(parts.authority)) return std::nullopt;
    target.remove_prefix(end);
    if (!target.starts_with('/')) parts.path = "/";
  } else if (target != "*" || method != HttpMethod::OPTIONS) {
    return std::nullopt;
  }
  const size_t mark = std::min(target.find('?'), target.size());
  if (parts.path.empty()) parts.path = target.substr(0, mark);
  if (mark < target.size()) parts.query = target.substr(mark + 1);
  return parts;
}

}  // namespace

Verdict HeadParser::parse(std::string_view text, const HeadScan& scan, HttpRequest& request, BodyFraming& framing) {
  // The head is "GET /path HTTP/1.1\r\n" and the fields.
  FieldList& fields = request.m_headers;
  const std::string_view head = FieldListControl::text(fields).assign(text.substr(scan.begin(), scan.end() - scan.begin()));
  constexpr std::string_view kVersion = "HTTP/1.1";
  const bool is_11 = head[scan.targetEnd() + kVersion.size()] == kVersion.back();

  KnownFields known;
  bool well_formed = true;
  for (size_t i = 0; i < fields.size() && well_formed; ++i) well_formed = known.take(fields[i]);
  if (!well_formed) return bad("connection malformed");
  if (const Verdict verdict = checkFraming(known, is_11, framing); !verdict.ok()) return verdict;

  request.m_method = toHttpMethod(head.substr(0, scan.methodEnd()));
  if (request.m_method == HttpMethod::INVALID_METHOD || request.m_method == HttpMethod::CONNECT) {
    return Verdict::refused(HttpStatus::NOT_IMPLEMENTED, "method not known");
  }
  const auto target = splitTarget(head.substr(scan.methodEnd() + 1, scan.targetEnd() - scan.methodEnd() - 1), request.m_method);
  if (!target) return bad("request target malformed");
  if (known.hosts > 1 || (known.hosts == 0 && is_11)) return bad("not exactly one host");
  if (known.hosts == 1 && !isAuthority(known.host)) return bad("host malformed");
  if (known.expects_other) return Verdict::refused(HttpStatus::EXPECTATION_FAILED, "unknown expectation");

  const bool has_body = framing.chunked || framing.length > 0;
  framing.awaits_continue = known.expects_continue && is_11 && has_body;
  request.m_version = is_11 ? 0x11 : 0x10;
  request.m_close = known.close || (!is_11 && !known.keep_alive);
  request.m_websocket = known.upgrade && known.websocket;
  request.m_path.clear();
  request.m_path.append(target->path);
  request.m_query.append(target->query);  // it was empty, since the request is as new
  // This comes last, because it may move the head to which the views belong.
  if (const std::string_view host = target->authority;
      !host.empty() && !FieldListControl::replace(request.m_headers, "host", host)) {
    request.m_headers.add("host", std::string(host));
  }
  return Verdict::accepted(!request.m_close);
}

}  // namespace sylar::http::detail
