#include "sylar/http/http.h"

#include <ostream>
#include <sstream>
#include <stdexcept>

#include "sylar/http/char_class.h"
#include "sylar/http/http_date.h"
#include "sylar/http/http_error.h"
#include "sylar/http/percent.h"

namespace sylar::http {
namespace {

constexpr size_t kKeptBody = 4 * 1024;

void requireNo(std::string_view forbidden, std::string_view text, const char* what) {
  if (text.find_first_of(forbidden) != std::string_view::npos)
    throw std::invalid_argument(std::string(what) + ": forbidden character");
}

constexpr std::string_view kInTarget("\r\n\0 ", 4);
constexpr std::string_view kInCookie("\r\n\0;", 4);

// Calls `use` with each non-empty piece of `text` between separators.
template <class Use>
void eachPiece(std::string_view text, char separator, Use use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Returns the text before and after the first '='.
std::pair<std::string_view, std::string_view> splitPair(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {text, {}};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

template <class Message>
std::string asText(const Message& message) {
  std::ostringstream os;
  message.dump(os);
  return std::move(os).str();
}

}  // namespace

// --- HttpMessage

FieldList& HttpMessage::headerList() {
  m_map_stale = true;
  return m_headers;
}

const HttpMessage::MapType& HttpMessage::getHeaders() const {
  if (!m_map_stale) return m_map;
  m_map.clear();
  for (size_t i = 0; i < m_headers.size(); ++i) {
    const std::string_view name = m_headers[i].name;
    if (m_map.find(name) == m_map.end()) m_map.emplace(name, *m_headers.joined(name));
  }
  m_map_stale = false;
  return m_map;
}

void HttpMessage::setHeaders(const MapType& headers) {
  FieldList list;
  for (const auto& [name, value] : headers) list.add(name, value);
  headerList() = std::move(list);
}

std::string HttpMessage::getHeader(std::string_view key, std::string_view def) const {
  return m_headers.joined(key).value_or(std::string(def));
}

void HttpMessage::setHeader(std::string_view key, std::string_view value) { headerList().set(key, value); }

void HttpMessage::delHeader(std::string_view key) { headerList().del(key); }

bool HttpMessage::hasHeader(std::string_view key, std::string* value) const {
  if (value == nullptr) return m_headers.find(key).has_value();
  auto found = m_headers.joined(key);
  if (found) *value = std::move(*found);
  return found.has_value();
}

void HttpMessage::resetMessage(uint8_t version, bool close) {
  headerList().clear();
  if (m_body.capacity() > kKeptBody) std::string().swap(m_body);
  m_body.clear();
  m_version = version;
  m_close = close;
  m_websocket = false;
}

void HttpMessage::dumpFields(std::ostream& os) const {
  if (!m_websocket) os << "connection: " << (m_close ? "close" : "keep-alive") << "\r\n";
  for (size_t i = 0; i < m_headers.size(); ++i) {
    const Field field = m_headers[i];
    const bool ours = equalsIgnoreCase(field.name, "content-length") || equalsIgnoreCase(field.name, "transfer-encoding") ||
                      (!m_websocket && equalsIgnoreCase(field.name, "connection"));
    if (!ours) os << field.name << ": " << field.value << "\r\n";
  }
}

// --- HttpRequest

std::shared_ptr<HttpResponse> HttpRequest::createResponse() const { return std::make_shared<HttpResponse>(m_version, m_close); }

void HttpRequest::reset(uint8_t version, bool close) {
  resetMessage(version, close);
  m_method = HttpMethod::GET;
  m_path.clear();
  m_path.push_back('/');
  m_query.clear();
  m_fragment.clear();
  m_trailers.clear();
  if (!m_path_params.empty()) m_path_params.clear();
  if (!m_params.empty()) m_params.clear();
  if (!m_repeated_params.empty()) m_repeated_params.clear();
  if (!m_cookies.empty()) m_cookies.clear();
  m_param_count = 0;
  m_query_parsed = m_form_parsed = m_cookies_parsed = false;
}

void HttpRequest::setPath(std::string_view path) {
  requireNo(kInTarget, path, "path");
  m_path = path;
}

void HttpRequest::setQuery(std::string_view query) {
  requireNo(kInTarget, query, "query");
  m_query = query;
}

void HttpRequest::setFragment(std::string_view fragment) {
  requireNo(kInTarget, fragment, "fragment");
  m_fragment = fragment;
}

std::string HttpRequest::getPathParam(std::string_view name) const {
  for (const auto& [key, value] : m_path_params) {
    if (key == name) return value;
  }
  return {};
}

void HttpRequest::setPathParam(std::string_view name, std::string value) {
  std::erase_if(m_path_params, [&](const auto& one) { return one.first == name; });
  m_path_params.emplace_back(name, std::move(value));
}

void HttpRequest::setCountLimits(size_t max_params, size_t max_cookies) {
  m_max_params = max_params;
  m_max_cookies = max_cookies;
}

std::optional<std::string_view> HttpRequest::lookUp(const MapType& map, std::string_view key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

// Adds the parameters of `text`, a query or form. Throws and adds nothing if there would be too many.
void HttpRequest::addPairs(std::string_view text) const {
  size_t count = m_param_count;
  eachPiece(text, '&', [&count](std::string_view) { ++count; });
  if (count > m_max_params) throw HttpError(HttpStatus::BAD_REQUEST, "too many parameters");
  m_param_count = count;
  eachPiece(text, '&', [this](std::string_view piece) {
    const auto [name, value] = splitPair(piece);
    std::string key = formDecode(name);
    if (m_params.find(key) == m_params.end()) {
      m_params.emplace(std::move(key), formDecode(value));
    } else {
      m_repeated_params.emplace_back(std::move(key), formDecode(value));
    }
  });
}

const HttpMessage::MapType& HttpRequest::getParams() const {
  if (!m_query_parsed) {
    addPairs(m_query);
    m_query_parsed = true;
  }
  if (!m_form_parsed) {
    const auto type = m_headers.find("content-type");
    const std::string_view media = type ? trimmed(type->substr(0, type->find(';'))) : std::string_view();
    if (equalsIgnoreCase(media, "application/x-www-form-urlencoded")) addPairs(m_body);
    m_form_parsed = true;
  }
  return m_params;
}

void HttpRequest::setParams(MapType params) {
  m_params = std::move(params);
  m_repeated_params.clear();
  m_query_parsed = m_form_parsed = true;
}

std::string HttpRequest::getParam(std::string_view key, std::string_view def) const {
  return std::string(lookUp(getParams(), key).value_or(def));
}

std::vector<std::string> HttpRequest::getParamValues(std::string_view key) const {
  std::vector<std::string> values;
  if (const auto first = lookUp(getParams(), key)) values.emplace_back(*first);
  for (const auto& [name, value] : m_repeated_params) {
    if (equalsIgnoreCase(name, key)) values.push_back(value);
  }
  return values;
}

void HttpRequest::eraseRepeated(std::string_view key) {
  std::erase_if(m_repeated_params, [&](const auto& one) { return equalsIgnoreCase(one.first, key); });
}

void HttpRequest::setParam(std::string_view key, std::string_view value) {
  getParams();
  eraseRepeated(key);
  m_params.insert_or_assign(std::string(key), value);
}

void HttpRequest::delParam(std::string_view key) {
  getParams();
  eraseRepeated(key);
  if (const auto found = m_params.find(key); found != m_params.end()) m_params.erase(found);
}

bool HttpRequest::hasParam(std::string_view key, std::string* value) const {
  const auto found = lookUp(getParams(), key);
  if (found && value != nullptr) *value = *found;
  return found.has_value();
}

const HttpMessage::MapType& HttpRequest::getCookies() const {
  if (m_cookies_parsed) return m_cookies;
  const std::string text = m_headers.joined("cookie").value_or("");
  size_t count = 0;
  eachPiece(text, ';', [&count](std::string_view) { ++count; });
  if (count > m_max_cookies) throw HttpError(HttpStatus::BAD_REQUEST, "too many cookies");
  eachPiece(text, ';', [this](std::string_view piece) {
    const auto [name, value] = splitPair(trimmed(piece));
    if (!name.empty()) m_cookies.emplace(name, value);
  });
  m_cookies_parsed = true;
  return m_cookies;
}

void HttpRequest::setCookies(MapType cookies) {
  m_cookies.clear();
  m_cookies.merge(cookies);  // not an assignment, which would also assign the order of names
  m_cookies_parsed = true;
}

std::string HttpRequest::getCookie(std::string_view key, std::string_view def) const {
  return std::string(lookUp(getCookies(), key).value_or(def));
}

void HttpRequest::setCookie(std::string_view key, std::string_view value) {
  requireToken(key, "cookie name");
  requireNo(kInCookie, value, "cookie value");
  getCookies();
  m_cookies.insert_or_assign(std::string(key), value);
}

void HttpRequest::delCookie(std::string_view key) {
  getCookies();
  if (const auto found = m_cookies.find(key); found != m_cookies.end()) m_cookies.erase(found);
}

bool HttpRequest::hasCookie(std::string_view key, std::string* value) const {
  const auto found = lookUp(getCookies(), key);
  if (found && value != nullptr) *value = *found;
  return found.has_value();
}

void HttpRequest::init() {
  if (const auto option = m_headers.find("connection")) m_close = !equalsIgnoreCase(*option, "keep-alive");
}

void HttpRequest::initParam() {
  initQueryParam();
  initBodyParam();
  initCookies();
}

void HttpRequest::initQueryParam() { getParams(); }

void HttpRequest::initBodyParam() { getParams(); }

void HttpRequest::initCookies() { getCookies(); }

std::ostream& HttpRequest::dump(std::ostream& os) const {
  os << HttpMethodToString(m_method) << ' ' << m_path << (m_query.empty() ? "" : "?") << m_query << " HTTP/" << (m_version >> 4)
     << '.' << (m_version & 0xf) << "\r\n";
  dumpFields(os);
  if (!m_body.empty()) os << "content-length: " << m_body.size() << "\r\n";
  return os << "\r\n" << m_body;
}

std::string HttpRequest::toString() const { return asText(*this); }

// --- HttpResponse

void HttpResponse::reset(uint8_t version, bool close) {
  resetMessage(version, close);
  m_status = HttpStatus::OK;
  m_reason.clear();
}

void HttpResponse::setReason(std::string_view reason) {
  requireOneLine(reason, "reason");
  m_reason = reason;
}

void HttpResponse::setRedirect(std::string_view uri) {
  setHeader("location", uri);
  m_status = HttpStatus::FOUND;
}

void HttpResponse::redirect(std::string_view uri, HttpStatus status) {
  const auto code = static_cast<unsigned>(status);
  if (code < 301 || code > 308 || (code > 303 && code < 307))
    throw std::invalid_argument("redirect: this status is no redirection");
  setRedirect(uri);
  m_status = status;
}

void HttpResponse::fill(std::string_view type, std::string&& body, HttpStatus status) {
  setHeader("content-type", type);
  m_body = std::move(body);
  m_status = status;
}

void HttpResponse::json(std::string body, HttpStatus status) { fill("application/json", std::move(body), status); }

void HttpResponse::text(std::string body, HttpStatus status) { fill("text/plain; charset=utf-8", std::move(body), status); }

void HttpResponse::html(std::string body, HttpStatus status) { fill("text/html; charset=utf-8", std::move(body), status); }

void HttpResponse::setCookie(std::string_view key, std::string_view value, time_t expired, std::string_view path,
                             std::string_view domain, bool secure) {
  setCookie({.name = std::string(key),
             .value = std::string(value),
             .path = std::string(path),
             .domain = std::string(domain),
             .expires = expired,
             .secure = secure});
}

void HttpResponse::setCookie(const Cookie& cookie) {
  requireToken(cookie.name, "cookie name");
  if (!cookie.value.empty() && !allChars(cookie.value, kCookieChar)) {
    throw std::invalid_argument("cookie value: forbidden character");
  }
  for (const std::string& part : {cookie.path, cookie.domain}) requireNo(kInCookie, part, "cookie");
  if (cookie.same_site == Cookie::SameSite::kNone && !cookie.secure) {
    throw std::invalid_argument("cookie: SameSite=None without Secure");
  }
  std::string text = cookie.name + '=' + cookie.value;
  if (cookie.expires > 0) text.append("; expires=").append(httpDate(cookie.expires));
  if (cookie.max_age) text.append("; max-age=").append(std::to_string(cookie.max_age->count()));
  if (!cookie.domain.empty()) text.append("; domain=").append(cookie.domain);
  if (!cookie.path.empty()) text.append("; path=").append(cookie.path);
  if (cookie.secure) text.append("; secure");
  if (cookie.http_only) text.append("; httponly");
  switch (cookie.same_site) {
    case Cookie::SameSite::kUnset: break;
    case Cookie::SameSite::kStrict: text.append("; samesite=strict"); break;
    case Cookie::SameSite::kLax: text.append("; samesite=lax"); break;
    case Cookie::SameSite::kNone: text.append("; samesite=none"); break;
  }
  headerList().add("set-cookie", text);
}

std::ostream& HttpResponse::dump(std::ostream& os) const {
  os << "HTTP/" << (m_version >> 4) << '.' << (m_version & 0xf) << ' ' << static_cast<unsigned>(m_status) << ' '
     << (m_reason.empty() ? HttpStatusToString(m_status) : m_reason.c_str()) << "\r\n";
  dumpFields(os);
  return os << "content-length: " << m_body.size() << "\r\n\r\n" << m_body;
}

std::string HttpResponse::toString() const { return asText(*this); }

std::ostream& operator<<(std::ostream& os, const HttpRequest& request) { return request.dump(os); }

std::ostream& operator<<(std::ostream& os, const HttpResponse& response) { return response.dump(os); }

}  // namespace sylar::http
