// A request and a response, with sylar's names. The base is the header fields that both have.
//
// Thread safety of all types here: as a standard container: any number of readers or one writer. The getters of maps, parameters
// and cookies parse on first use, so they count as writing. May suspend: no.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sylar/http/field_list.h"
#include "sylar/http/http_names.h"
#include "sylar/http/limits.h"
#include "sylar/http/text_value.h"

namespace sylar::http {

/// Names and values, names compared without case: the form in which headers, parameters and cookies are handed out whole.
using FieldMap = std::map<std::string, std::string, CaseInsensitiveLess>;

/// What requests and responses have in common.
class HttpMessage {
 public:
  using MapType = FieldMap;

  /// 0x11 for HTTP/1.1, 0x10 for HTTP/1.0.
  uint8_t getVersion() const { return m_version; }
  void setVersion(uint8_t version) { m_version = version; }

  /// Does the connection end with this message?
  bool isClose() const { return m_close; }
  void setClose(bool close) { m_close = close; }

  /// Is this a WebSocket handshake?
  bool isWebsocket() const { return m_websocket; }
  void setWebsocket(bool websocket) { m_websocket = websocket; }

  const std::string& getBody() const { return m_body; }
  void setBody(std::string body) { m_body = std::move(body); }
  /// The body in place, to fill it without a copy.
  std::string& body() { return m_body; }

  /// The header fields as they are; no copy, no map. Prefer it where speed counts.
  const FieldList& headers() const { return m_headers; }
  /// The fields for changing them; also the way to a repeated field (`headerList().add`).
  FieldList& headerList();

  /// All headers as a map; equal names are joined by ", ". Built when asked for; the reference stays good as long as the message,
  /// its content is renewed by the next call after a change.
  const MapType& getHeaders() const;
  /// Replaces all headers. Throws as setHeader().
  void setHeaders(const MapType& headers);
  /// The value of that header, several joined by ", "; `def` if there is none.
  std::string getHeader(std::string_view key, std::string_view def = "") const;
  /// Throws std::invalid_argument if `key` is no token, or `value` holds CR, LF or NUL.
  void setHeader(std::string_view key, std::string_view value);
  void delHeader(std::string_view key);
  /// Is there such a header? Its value goes to `value` if that is not null.
  bool hasHeader(std::string_view key, std::string* value = nullptr) const;
  /// The header as a T: true if it is there and is one; else `value` = `def` and false.
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
    if (text && fromText(*text, value)) return true;
    value = def;
    return false;
  }
  void resetMessage(uint8_t version, bool close);
  /// The head as text without its last empty line, framed as sylar's dump() does; writers of the wire have their own.
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

/// A request: read by a RequestReader or built by a client. It owns all its bytes, so it may be kept as long as one likes.
class HttpRequest : public HttpMessage {
 public:
  using ptr = std::shared_ptr<HttpRequest>;

  explicit HttpRequest(uint8_t version = 0x11, bool close = true) : HttpMessage(version, close) {}

  /// A response of the same version that keeps or ends the connection as this request wishes.
  std::shared_ptr<HttpResponse> createResponse() const;
  /// Makes it as new, but keeps its memory for the next request (a body of more than 4 KiB is given back).
  void reset(uint8_t version = 0x11, bool close = true);

  HttpMethod getMethod() const { return m_method; }
  void setMethod(HttpMethod method) { m_method = method; }

  /// The path as sent, still encoded (percentDecode() decodes it); "*" for OPTIONS *.
  const std::string& getPath() const { return m_path; }
  /// What follows the first '?', still encoded.
  const std::string& getQuery() const { return m_query; }
  /// Never sent; for clients that keep a whole URI.
  const std::string& getFragment() const { return m_fragment; }
  /// The setters throw std::invalid_argument if there is a CR, LF, NUL or space in it.
  void setPath(std::string_view path);
  void setQuery(std::string_view query);
  void setFragment(std::string_view fragment);

  /// Fields after a chunked body, apart from the headers: they are no part of what a header says.
  const FieldList& trailers() const { return m_trailers; }

  /// Parameters: those of the query, and of the body if its content-type is application/x-www-form-urlencoded. Names compare
  /// without case; the first of equal names counts. The first call of any of these parses; it throws HttpError 400 beyond
  /// `max_params`.
  const MapType& getParams() const;
  void setParams(MapType params);
  std::string getParam(std::string_view key, std::string_view def = "") const;
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

  /// Cookies of the request; otherwise as parameters, with `max_cookies`. setCookie() throws std::invalid_argument if `key` is no
  /// token, or `value` holds CR, LF, NUL or ';'. Source: RFC 6265 section 5.4.
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

  /// How many parameters and cookies it may have; those of HttpLimits until then.
  void setCountLimits(size_t max_params, size_t max_cookies);

  /// As text: head and body as a client would send them, framed by content-length.
  std::ostream& dump(std::ostream& os) const;
  std::string toString() const;

  /// sylar's names: takes `close` from the connection header; parses parameters and cookies now instead of on first use.
  void init();
  void initParam();
  void initQueryParam();
  void initBodyParam();
  void initCookies();

 private:
  friend class HeadParser;
  friend class RequestReader;

  static std::optional<std::string_view> lookUp(const MapType& map, std::string_view key);
  void addPairs(std::string_view text) const;

  HttpMethod m_method = HttpMethod::GET;
  std::string m_path = "/";
  std::string m_query;
  std::string m_fragment;
  FieldList m_trailers;
  size_t m_max_params = HttpLimits{}.max_params;
  size_t m_max_cookies = HttpLimits{}.max_cookies;
  mutable size_t m_param_count = 0;  // met so far in query and form
  mutable MapType m_params;
  mutable MapType m_cookies;
  mutable bool m_query_parsed = false;
  mutable bool m_form_parsed = false;
  mutable bool m_cookies_parsed = false;
};

/// A response: built by a handler, written by a ResponseWriter.
class HttpResponse : public HttpMessage {
 public:
  using ptr = std::shared_ptr<HttpResponse>;

  explicit HttpResponse(uint8_t version = 0x11, bool close = true) : HttpMessage(version, close) {}

  /// Makes it as new, but keeps its memory (a body of more than 4 KiB is given back).
  void reset(uint8_t version = 0x11, bool close = true);

  HttpStatus getStatus() const { return m_status; }
  void setStatus(HttpStatus status) { m_status = status; }

  /// The reason phrase if one was set, else empty: then the writer takes the registered one.
  const std::string& getReason() const { return m_reason; }
  /// Throws std::invalid_argument on CR, LF or NUL.
  void setReason(std::string_view reason);

  /// 302 Found with `location: uri`. Throws std::invalid_argument on CR, LF or NUL.
  void setRedirect(std::string_view uri);
  /// Adds a set-cookie header; several add up. `expired`: seconds since 1970, 0 for a cookie of the session. Throws
  /// std::invalid_argument if `key` is no token, or another part holds CR, LF, NUL or ';'.
  void setCookie(std::string_view key, std::string_view value, time_t expired = 0, std::string_view path = "",
                 std::string_view domain = "", bool secure = false);

  /// As text: head and body, framed by content-length, without a date.
  std::ostream& dump(std::ostream& os) const;
  std::string toString() const;

 private:
  HttpStatus m_status = HttpStatus::OK;
  std::string m_reason;
};

std::ostream& operator<<(std::ostream& os, const HttpRequest& request);
std::ostream& operator<<(std::ostream& os, const HttpResponse& response);

}  // namespace sylar::http
