// HTTP requests and responses, with sylar's names.
//
// Thread safety: all types here allow any number of readers or one writer, as a standard container does. The getters of maps,
// parameters and cookies parse on first use, so they count as writing. May suspend: no.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sylar/api.h"
#include "sylar/http/field_list.h"
#include "sylar/http/http_error.h"
#include "sylar/http/http_names.h"
#include "sylar/http/limits.h"

namespace sylar::http {

namespace detail {
/// Converts the whole of `text` to a T. Returns false and leaves `value` untouched if `text` is not a T or is out of T's range. A
/// bool is "0", "1", "true" or "false". Instantiated for std::string and all arithmetic types that std::from_chars reads.
template <class T>
SYLAR_API bool fromText(std::string_view text, T& value);

class HeadParser;
class RequestReader;
}  // namespace detail

/// The map in which headers, parameters and cookies are returned as a whole. Names are compared without case, except those of
/// cookies, which are compared exactly.
using FieldMap = std::map<std::string, std::string, NameLess>;

/// The common base of requests and responses: header fields and a body.
class SYLAR_API HttpMessage {
 public:
  using MapType = FieldMap;

  /// Returns 0x11 for HTTP/1.1 and 0x10 for HTTP/1.0.
  uint8_t getVersion() const { return m_version; }
  void setVersion(uint8_t version) { m_version = version; }

  /// Returns true if the connection ends with this message.
  bool isClose() const { return m_close; }
  void setClose(bool close) { m_close = close; }

  /// Returns true if this is a WebSocket handshake.
  bool isWebsocket() const { return m_websocket; }
  void setWebsocket(bool websocket) { m_websocket = websocket; }

  const std::string& getBody() const { return m_body; }
  void setBody(std::string body) { m_body = std::move(body); }
  /// Returns the body itself, so that it can be filled without a copy.
  std::string& body() { return m_body; }

  /// Returns the header fields as they are. This is the fastest access to them, without a copy or a map.
  const FieldList& headers() const { return m_headers; }
  /// Returns the fields for modification. Use it to add a field whose name already exists (`headerList().add`).
  FieldList& headerList();

  /// Returns all headers as a map, in which the values of equal names are joined by ", ". The first call after a change rebuilds
  /// the map. The reference is valid as long as the message lives.
  const MapType& getHeaders() const;
  /// Replaces all headers. Throws as setHeader() does.
  void setHeaders(const MapType& headers);
  /// Returns the value of that header (several values are joined by ", "), or `def` if there is none.
  std::string getHeader(std::string_view key, std::string_view def = "") const;
  /// Sets the only header of that name. Throws std::invalid_argument if `key` is not a token or `value` contains a control
  /// character other than a tab.
  void setHeader(std::string_view key, std::string_view value);
  void delHeader(std::string_view key);
  /// Returns true if that header exists, and stores its value in `value` if that is not null.
  bool hasHeader(std::string_view key, std::string* value = nullptr) const;
  /// Converts the header to a T, which is std::string, bool ("0", "1", "true" or "false") or a number. Returns false and sets
  /// `value` to `def` if the header does not exist or is not a T.
  template <class T>
  bool checkGetHeaderAs(std::string_view key, T& value, const T& def = T()) const {
    return convert(m_headers.joined(key), value, def);
  }
  template <class T>
  T getHeaderAs(std::string_view key, const T& def = T()) const {
    T value{};
    checkGetHeaderAs(key, value, def);
    return value;
  }

 protected:
  HttpMessage(uint8_t version, bool close) : m_version(version), m_close(close) {}
  ~HttpMessage() = default;

  template <class Text, class T>
  static bool convert(const std::optional<Text>& text, T& value, const T& def) {
    static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, std::string>, "a number, bool or std::string");
    if (text && detail::fromText(*text, value)) return true;
    value = def;
    return false;
  }
  void resetMessage(uint8_t version, bool close);
  /// Writes the header fields as text, without the empty line after them.
  void dumpFields(std::ostream& os) const;

  FieldList m_headers;
  std::string m_body;
  uint8_t m_version;
  bool m_close;
  bool m_websocket = false;

 private:
  mutable MapType m_map;
  mutable bool m_map_stale = true;
};

class HttpResponse;

/// A request that was received from a client or built to be sent. It owns all its bytes, so it may be kept.
class SYLAR_API HttpRequest : public HttpMessage {
 public:
  using ptr = std::shared_ptr<HttpRequest>;

  explicit HttpRequest(uint8_t version = 0x11, bool close = true) : HttpMessage(version, close) {}

  /// Returns a response of the same version that keeps or ends the connection as this request asks.
  std::shared_ptr<HttpResponse> createResponse() const;
  /// Makes it as new, but keeps its memory (except a body of more than 4 KiB).
  void reset(uint8_t version = 0x11, bool close = true);

  HttpMethod getMethod() const { return m_method; }
  void setMethod(HttpMethod method) { m_method = method; }

  /// Returns the path as sent, still encoded (percentDecode() decodes it), or "*" for OPTIONS *.
  const std::string& getPath() const { return m_path; }
  /// Returns the part after the first '?', still encoded.
  const std::string& getQuery() const { return m_query; }
  /// Returns the fragment. It is never sent, and is for clients that keep a whole URI.
  const std::string& getFragment() const { return m_fragment; }
  /// These setters throw std::invalid_argument if the text contains a CR, LF, NUL or space.
  void setPath(std::string_view path);
  void setQuery(std::string_view query);
  void setFragment(std::string_view fragment);

  /// Returns the part of the path that the `{name}` or `{name...}` of the Router's pattern stands for, decoded once, so it may
  /// hold any byte, '/' too. Returns an empty text if there is none of that name, or if a `{name...}` stands for nothing.
  std::string getPathParam(std::string_view name) const;
  /// Makes `value` the part of that name, as a Router does before it calls a handler.
  void setPathParam(std::string_view name, std::string value);

  /// Returns the fields that follow a chunked body. They do not count as headers.
  const FieldList& trailers() const { return m_trailers; }

  /// Returns the parameters of the query, and of the body if its content-type is application/x-www-form-urlencoded. Names are
  /// compared without case, as in sylar. If a name repeats, its first value counts, and getParamValues() returns all of them. The
  /// first call of any of these functions parses the text, and throws HttpError 400 if there are more than
  /// HttpLimits::max_params.
  const MapType& getParams() const;
  void setParams(MapType params);
  std::string getParam(std::string_view key, std::string_view def = "") const;
  /// Returns all values of that name in order, those of the query before those of the body.
  std::vector<std::string> getParamValues(std::string_view key) const;
  /// Makes `value` the only value of that name.
  void setParam(std::string_view key, std::string_view value);
  void delParam(std::string_view key);
  bool hasParam(std::string_view key, std::string* value = nullptr) const;
  template <class T>
  bool checkGetParamAs(std::string_view key, T& value, const T& def = T()) const {
    return convert(lookUp(getParams(), key), value, def);
  }
  template <class T>
  T getParamAs(std::string_view key, const T& def = T()) const {
    T value{};
    checkGetParamAs(key, value, def);
    return value;
  }

  /// These functions work on the cookies of the request as those above do on parameters, with HttpLimits::max_cookies as the
  /// limit. Names of cookies are compared exactly, so `Session` and `session` are different cookies. setCookie() throws
  /// std::invalid_argument if `key` is not a token or `value` contains CR, LF, NUL or ';'. Source: RFC 6265 section 5.4.
  const MapType& getCookies() const;
  void setCookies(MapType cookies);
  std::string getCookie(std::string_view key, std::string_view def = "") const;
  void setCookie(std::string_view key, std::string_view value);
  void delCookie(std::string_view key);
  bool hasCookie(std::string_view key, std::string* value = nullptr) const;
  template <class T>
  bool checkGetCookieAs(std::string_view key, T& value, const T& def = T()) const {
    return convert(lookUp(getCookies(), key), value, def);
  }
  template <class T>
  T getCookieAs(std::string_view key, const T& def = T()) const {
    T value{};
    checkGetCookieAs(key, value, def);
    return value;
  }

  /// Sets how many parameters and cookies it may have. Those of HttpLimits hold until then.
  void setCountLimits(size_t max_params, size_t max_cookies);

  /// Writes the head and body as a client would send them, framed by content-length.
  std::ostream& dump(std::ostream& os) const;
  std::string toString() const;

  /// These are sylar's names. init() takes `close` from the connection header. The others parse parameters and cookies now
  /// instead of on first use.
  void init();
  void initParam();
  void initQueryParam();
  void initBodyParam();
  void initCookies();

 private:
  friend class detail::HeadParser;
  friend class detail::RequestReader;

  static std::optional<std::string_view> lookUp(const MapType& map, std::string_view key);
  void addPairs(std::string_view text) const;
  void eraseRepeated(std::string_view key);

  HttpMethod m_method = HttpMethod::GET;
  std::string m_path = "/";
  std::string m_query;
  std::string m_fragment;
  FieldList m_trailers;
  std::vector<std::pair<std::string, std::string>> m_path_params;
  size_t m_max_params = HttpLimits{}.max_params;
  size_t m_max_cookies = HttpLimits{}.max_cookies;
  mutable size_t m_param_count = 0;  // found so far in query and form
  mutable MapType m_params;
  mutable std::vector<std::pair<std::string, std::string>> m_repeated_params;  // further values of names in m_params
  mutable MapType m_cookies{NameLess{.exact = true}};
  mutable bool m_query_parsed = false;
  mutable bool m_form_parsed = false;
  mutable bool m_cookies_parsed = false;
};

/// A cookie that a response sets. Source: RFC 6265 section 4.1; SameSite: its successor (draft-ietf-httpbis-rfc6265bis).
struct Cookie {
  enum class SameSite : uint8_t { kUnset, kStrict, kLax, kNone };

  std::string name;                                  ///< a token
  std::string value;                                 ///< visible ASCII except " , ; and backslash; percentEncode() takes any text
  std::string path = {};                             ///< that of the request if empty
  std::string domain = {};                           ///< only the host of the request if empty
  std::optional<std::chrono::seconds> max_age = {};  ///< from now on; 0 or less removes the cookie; overrides `expires`
  time_t expires = 0;                                ///< seconds since 1970, or 0 for the length of the session
  bool secure = false;                               ///< sent over TLS only
  bool http_only = false;                            ///< hidden from scripts
  SameSite same_site = SameSite::kUnset;             ///< kNone needs `secure`
};

/// A response, which a handler fills in.
class SYLAR_API HttpResponse : public HttpMessage {
 public:
  using ptr = std::shared_ptr<HttpResponse>;

  explicit HttpResponse(uint8_t version = 0x11, bool close = true) : HttpMessage(version, close) {}

  /// Makes it as new, but keeps its memory (except a body of more than 4 KiB).
  void reset(uint8_t version = 0x11, bool close = true);

  HttpStatus getStatus() const { return m_status; }
  void setStatus(HttpStatus status) { m_status = status; }

  /// Returns the reason phrase that was set. If it is empty, the registered one is sent.
  const std::string& getReason() const { return m_reason; }
  /// Sets the reason phrase. Throws std::invalid_argument if it contains a control character other than a tab.
  void setReason(std::string_view reason);

  /// Makes this a 302 Found with `location: uri`. Throws std::invalid_argument if `uri` contains a control character other than a
  /// tab.
  void setRedirect(std::string_view uri);
  /// Makes this a redirection to `uri`. Throws std::invalid_argument as setRedirect() does, or if `status` is none of 301, 302,
  /// 303, 307 and 308.
  void redirect(std::string_view uri, HttpStatus status = HttpStatus::FOUND);
  /// These set the status, the body and its content-type, which for text and html names UTF-8.
  void json(std::string body, HttpStatus status = HttpStatus::OK);
  void text(std::string body, HttpStatus status = HttpStatus::OK);
  void html(std::string body, HttpStatus status = HttpStatus::OK);
  /// Adds a set-cookie header; each call adds one. Throws std::invalid_argument if a part is not as Cookie says, or if `path` or
  /// `domain` contains a control character or ';'.
  void setCookie(const Cookie& cookie);
  /// Adds a set-cookie header with these parts. `expired` is in seconds since 1970, or 0 for a cookie of the session. Source:
  /// sylar.
  void setCookie(std::string_view key, std::string_view value, time_t expired = 0, std::string_view path = "",
                 std::string_view domain = "", bool secure = false);

  /// Writes the head and body as text, framed by content-length and without a date.
  std::ostream& dump(std::ostream& os) const;
  std::string toString() const;

 private:
  void fill(std::string_view type, std::string&& body, HttpStatus status);

  HttpStatus m_status = HttpStatus::OK;
  std::string m_reason;
};

SYLAR_API std::ostream& operator<<(std::ostream& os, const HttpRequest& request);
SYLAR_API std::ostream& operator<<(std::ostream& os, const HttpResponse& response);

}  // namespace sylar::http
