#include "sylar/http/head_parser.h"

#include <limits>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>

#include "sylar/http/char_class.h"

namespace sylar::http {
namespace {

namespace beast = boost::beast;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

constexpr Verdict bad(const char* why) { return Verdict::refused(HttpStatus::BAD_REQUEST, why); }

// Calls `use` with each element of a comma-separated list, blanks around it removed, until it says false; true if it never did.
template <class Use>
bool eachElement(std::string_view list, Use use) {
  for (;;) {
    const size_t comma = list.find(',');
    if (!use(trimmed(list.substr(0, comma)))) return false;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

// The fields with a meaning for the protocol, collected while the head is taken apart.
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

  void take(beast::http::field field, std::string_view value);
};

void KnownFields::take(beast::http::field field, std::string_view value) {
  switch (field) {
    case beast::http::field::host:
      ++hosts;
      host = value;
      break;
    case beast::http::field::content_length:
      ++lengths;
      length = value;
      break;
    case beast::http::field::transfer_encoding:
      ++codings;
      coding = value;
      break;
    case beast::http::field::connection:
      eachElement(value, [this](std::string_view option) {
        close |= equalsIgnoreCase(option, "close");
        keep_alive |= equalsIgnoreCase(option, "keep-alive");
        upgrade |= equalsIgnoreCase(option, "upgrade");
        return true;
      });
      break;
    case beast::http::field::upgrade: websocket |= equalsIgnoreCase(value, "websocket"); break;
    case beast::http::field::expect: (equalsIgnoreCase(value, "100-continue") ? expects_continue : expects_other) = true; break;
    default: break;
  }
}

// Beast's parser with our storage: fields go to the request's list as views, the known ones also aside.
class BeastParser final : public beast::http::basic_parser<true> {
 public:
  explicit BeastParser(FieldList& fields) : m_fields(fields) {
    // The scan has held our limits already.
    header_limit(std::numeric_limits<std::uint32_t>::max());
    body_limit(std::numeric_limits<std::uint64_t>::max());
  }

  bool parse(std::string_view head) {
    beast::error_code error;
    const size_t used = put(boost::asio::const_buffer(head.data(), head.size()), error);
    return !error && is_header_done() && used == head.size();
  }

  std::string_view m_method, m_target;
  int m_version = 0;
  KnownFields m_known;

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       beast::error_code&) override {
    m_version = version;
    m_method = view(method);
    m_target = view(target);
  }
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value, beast::error_code&) override {
    m_fields.addParsed(view(name), view(value));
    m_known.take(field, view(value));
  }
  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_header_impl(beast::error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
  std::size_t on_body_impl(beast::string_view, beast::error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, beast::error_code&) override { return 0; }
  void on_finish_impl(beast::error_code&) override {}

  FieldList& m_fields;
};

// Digits only, and at most 2^63 - 1.
std::optional<uint64_t> parseLength(std::string_view text) {
  if (!allChars(text, kDigit) || text.size() > 19) return std::nullopt;
  uint64_t value = 0;  // 19 digits always fit
  for (char c : text) value = 10 * value + static_cast<uint64_t>(c - '0');
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return value;
}

// We speak chunked and nothing else: what is well formed but other is 501, what is ambiguous is 400.
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

// host [ ":" port ], the host a name, an IPv4 address or an IPv6 address in brackets.
bool isAuthority(std::string_view text) {
  size_t host_end = std::min(text.find(':'), text.size());
  if (text.starts_with('[')) {
    host_end = text.find(']');
    if (host_end == std::string_view::npos || host_end == 1) return false;
    for (char c : text.substr(1, host_end - 1)) {
      if (!isChar(c, kHexDigit) && c != ':' && c != '.') return false;
    }
    ++host_end;
  } else if (!allChars(text.substr(0, host_end), kHostChar)) {
    return false;
  }
  const std::string_view port = text.substr(host_end);
  if (port.empty()) return true;
  if (port.size() < 2 || port.size() > 6 || port[0] != ':' || !allChars(port.substr(1), kDigit)) return false;
  unsigned number = 0;
  for (char c : port.substr(1)) number = 10 * number + static_cast<unsigned>(c - '0');
  return number <= 65535;
}

// A request target: its host, if it names one, and what follows. Source: RFC 9112 section 3.2.
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

Verdict HeadParser::parse(std::string_view head, HttpRequest& request, BodyFraming& framing) {
  BeastParser parser(request.m_headers);
  if (!parser.parse(request.m_headers.adopt(head))) return bad("not HTTP");
  const KnownFields& known = parser.m_known;
  const bool is_11 = parser.m_version == 11;
  if (const Verdict verdict = checkFraming(known, is_11, framing); !verdict.ok()) return verdict;

  request.m_method = toHttpMethod(parser.m_method);
  if (request.m_method == HttpMethod::INVALID_METHOD || request.m_method == HttpMethod::CONNECT) {
    return Verdict::refused(HttpStatus::NOT_IMPLEMENTED, "method not known");
  }
  const auto target = splitTarget(parser.m_target, request.m_method);
  if (!target) return bad("request target malformed");
  if (known.hosts > 1 || (known.hosts == 0 && is_11)) return bad("not exactly one host");
  if (known.hosts == 1 && !isAuthority(known.host)) return bad("host malformed");
  if (known.expects_other) return Verdict::refused(HttpStatus::EXPECTATION_FAILED, "unknown expectation");

  const bool has_body = framing.chunked || framing.length > 0;
  framing.awaits_continue = known.expects_continue && is_11 && has_body;
  request.m_version = is_11 ? 0x11 : 0x10;
  request.m_close = known.close || (!is_11 && !known.keep_alive);
  request.m_websocket = known.upgrade && known.websocket;
  request.m_path.assign(target->path);
  request.m_query.assign(target->query);
  // Last, for it may move the head to which the views belong.
  if (const std::string_view host = target->authority; !host.empty() && !request.m_headers.replaceParsed("host", host)) {
    request.m_headers.add("host", std::string(host));
  }
  return Verdict::accepted(!request.m_close);
}

}  // namespace sylar::http
