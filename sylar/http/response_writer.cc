#include "sylar/http/response_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "sylar/http/char_class.h"
#include "sylar/http/http_date.h"

namespace sylar::http::detail {
namespace {

// A body up to this size is copied after its head; a larger one is sent from where it is.
constexpr size_t kCopiedBody = 1024;

/// A number as text.
class Digits {
 public:
  explicit Digits(uint64_t number, int base = 10) : m_end(std::to_chars(m_text, m_text + sizeof m_text, number, base).ptr) {}
  operator std::string_view() const { return {m_text, static_cast<size_t>(m_end - m_text)}; }

 private:
  char m_text[20];
  const char* const m_end;
};

/// Returns the status line, or an empty text if the code is not a registered one.
std::string_view statusLine(HttpStatus status) {
  switch (status) {
#define XX(code, name, text) \
  case HttpStatus::name: return "HTTP/1.1 " #code " " text "\r\n";
    SYLAR_HTTP_STATUS_MAP(XX)
#undef XX
  }
  return {};
}

bool forbidsBody(HttpStatus status) {
  const auto code = static_cast<unsigned>(status);
  return code < 200 || status == HttpStatus::NO_CONTENT || status == HttpStatus::RESET_CONTENT ||
         status == HttpStatus::NOT_MODIFIED;
}

/// Returns true if one of the connection fields lists `close`.
bool wantsClose(const FieldList& headers) {
  for (size_t i = 0; i < headers.size(); ++i) {
    if (!equalsIgnoreCase(headers[i].name, "connection")) continue;
    for (std::string_view list = headers[i].value; !list.empty();) {
      const size_t comma = std::min(list.find(','), list.size());
      if (equalsIgnoreCase(trimmed(list.substr(0, comma)), "close")) return true;
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
  }
  return false;
}

/// Returns the length that the handler has given, or 0 if there is none.
uint64_t givenLength(const FieldList& headers) {
  const std::string_view text = headers.find("content-length").value_or("");
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  return error == std::errc() && end == text.data() + text.size() ? length : 0;
}

}  // namespace

bool ResponseWriter::refuse() {
  errno = EPROTO;
  return false;
}

bool ResponseWriter::fail(int error) {
  m_state = State::kFailed;
  m_keep_alive = false;
  errno = error;
  return false;
}

void ResponseWriter::putHead(const HttpRequest& request, const HttpResponse& response, Framing framing, uint64_t length) {
  const HttpStatus status = response.getStatus();
  const FieldList& headers = response.headers();
  const bool is_11 = request.getVersion() >= 0x11;
  const bool switches = status == HttpStatus::SWITCHING_PROTOCOLS;
  m_head_only = request.getMethod() == HttpMethod::HEAD;
  m_keep_alive =
      !request.isClose() && !response.isClose() && framing != Framing::kUntilClose && !switches && !wantsClose(headers);

  m_out.clear();
  if (const std::string_view line = statusLine(status); !line.empty() && response.getReason().empty()) {
    m_out.append(line);
  } else {
    const std::string_view reason =
        response.getReason().empty() ? std::string_view(HttpStatusToString(status)) : response.getReason();
    m_out.append("HTTP/1.1 ", Digits(static_cast<unsigned>(status)), " ", reason, "\r\n");
  }

  // The answer to a HEAD may give the length of a body that was never made. A 205 says that it has no body.
  if (m_head_only && length == 0) length = givenLength(headers);
  if (status == HttpStatus::RESET_CONTENT) {
    framing = Framing::kLength;
    length = 0;
  }
  bool has_date = false;
  for (size_t i = 0; i < headers.size(); ++i) {
    const Field field = headers[i];
    if (equalsIgnoreCase(field.name, "transfer-encoding") || equalsIgnoreCase(field.name, "content-length")) continue;
    if (equalsIgnoreCase(field.name, "connection") && !switches) continue;
    has_date |= equalsIgnoreCase(field.name, "date");
    m_out.append(field.name, ": ", field.value, "\r\n");
  }
  if (!has_date) m_out.append("date: ", recentHttpDate(m_now(nullptr)), "\r\n");
  if (framing == Framing::kChunked) m_out.append("transfer-encoding: chunked\r\n");
  if (framing == Framing::kLength) m_out.append("content-length: ", Digits(length), "\r\n");
  if (!switches && !m_keep_alive) {
    m_out.append("connection: close\r\n");
  } else if (!switches && !is_11) {
    m_out.append("connection: keep-alive\r\n");
  }
  m_out.append("\r\n");
}

// Sends the output block (the head or other text), then `body` and `tail`, with one call.
bool ResponseWriter::flush(std::string_view body, std::string_view tail) {
  m_started = true;
  std::array<iovec, 3> parts{};
  size_t count = 1;
  if (body.size() <= kCopiedBody) {
    m_out.append(body, tail);
  } else {
    parts[count++] = {const_cast<char*>(body.data()), body.size()};
    if (!tail.empty()) parts[count++] = {const_cast<char*>(tail.data()), tail.size()};
  }
  parts[0] = {m_out.data(), m_out.size()};
  const bool written = m_sink.writeAll({parts.data(), count});
  const int error = errno;
  m_out.clear();
  return written || fail(error);
}

bool ResponseWriter::write(const HttpRequest& request, const HttpResponse& response) {
  if (m_state != State::kIdle) return fail(EPROTO);
  if (!canSend(response.getStatus())) return refuse();
  const bool no_body = forbidsBody(response.getStatus());
  const std::string_view body = response.getBody();
  putHead(request, response, no_body ? Framing::kNone : Framing::kLength, body.size());
  return flush(no_body || m_head_only ? std::string_view() : body);
}

bool ResponseWriter::writeError(HttpStatus status) {
  HttpResponse response;
  response.setStatus(status);
  if (status == HttpStatus::SERVICE_UNAVAILABLE) response.setHeader("retry-after", "1");
  return write(HttpRequest(), response);
}

bool ResponseWriter::begin(const HttpRequest& request, const HttpResponse& response, std::optional<uint64_t> length) {
  if (m_state != State::kIdle) return fail(EPROTO);
  if (!canSend(response.getStatus())) return refuse();
  const bool no_body = forbidsBody(response.getStatus());
  const bool is_11 = request.getVersion() >= 0x11;
  const Framing framing = no_body ? Framing::kNone : length ? Framing::kLength : is_11 ? Framing::kChunked : Framing::kUntilClose;
  putHead(request, response, framing, length.value_or(0));
  m_left = length.value_or(0);
  m_state = no_body || m_head_only ? State::kNoBody : length ? State::kCounted : is_11 ? State::kChunked : State::kUntilClose;
  return flush({});
}

bool ResponseWriter::writePiece(std::string_view piece) {
  if (m_state == State::kIdle || m_state == State::kFailed) return refuse();
  if (m_state == State::kNoBody) {
    errno = EALREADY;
    return false;
  }
  if (piece.empty()) return true;
  m_out.clear();
  if (m_state == State::kCounted) {
    if (piece.size() > m_left) return fail(EMSGSIZE);
    m_left -= piece.size();
  }
  if (m_state != State::kChunked) return flush(piece);
  m_out.append(Digits(piece.size(), 16), "\r\n");
  return flush(piece, "\r\n");
}

bool ResponseWriter::end() {
  if (m_state == State::kIdle || m_state == State::kFailed) return refuse();
  if (m_state == State::kCounted && m_left > 0) return fail(EPROTO);
  const bool chunked = m_state == State::kChunked;
  m_state = State::kIdle;
  if (!chunked) return true;
  m_out.clear();
  m_out.append("0\r\n\r\n");
  return flush({});
}

}  // namespace sylar::http::detail
