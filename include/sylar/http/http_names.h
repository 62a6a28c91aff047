// HTTP methods and status codes: one table each, as X-macros (sylar's spelling), and the conversions.
//
// Thread safety: all functions from any thread. May suspend: no.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sylar/api.h"

// number, name as an identifier, name on the wire. Source: the IANA HTTP Method Registry; numbers as sylar has them.
#define SYLAR_HTTP_METHOD_MAP(XX)    \
  XX(0, DELETE, "DELETE")            \
  XX(1, GET, "GET")                  \
  XX(2, HEAD, "HEAD")                \
  XX(3, POST, "POST")                \
  XX(4, PUT, "PUT")                  \
  XX(5, CONNECT, "CONNECT")          \
  XX(6, OPTIONS, "OPTIONS")          \
  XX(7, TRACE, "TRACE")              \
  XX(8, COPY, "COPY")                \
  XX(9, LOCK, "LOCK")                \
  XX(10, MKCOL, "MKCOL")             \
  XX(11, MOVE, "MOVE")               \
  XX(12, PROPFIND, "PROPFIND")       \
  XX(13, PROPPATCH, "PROPPATCH")     \
  XX(14, SEARCH, "SEARCH")           \
  XX(15, UNLOCK, "UNLOCK")           \
  XX(16, BIND, "BIND")               \
  XX(17, REBIND, "REBIND")           \
  XX(18, UNBIND, "UNBIND")           \
  XX(19, ACL, "ACL")                 \
  XX(20, REPORT, "REPORT")           \
  XX(21, MKACTIVITY, "MKACTIVITY")   \
  XX(22, CHECKOUT, "CHECKOUT")       \
  XX(23, MERGE, "MERGE")             \
  XX(24, MSEARCH, "M-SEARCH")        \
  XX(25, NOTIFY, "NOTIFY")           \
  XX(26, SUBSCRIBE, "SUBSCRIBE")     \
  XX(27, UNSUBSCRIBE, "UNSUBSCRIBE") \
  XX(28, PATCH, "PATCH")             \
  XX(29, PURGE, "PURGE")             \
  XX(30, MKCALENDAR, "MKCALENDAR")   \
  XX(31, LINK, "LINK")               \
  XX(32, UNLINK, "UNLINK")           \
  XX(33, SOURCE, "SOURCE")

// code, name as an identifier, reason phrase. Source: the IANA HTTP Status Code Registry.
#define SYLAR_HTTP_STATUS_MAP(XX)                                             \
  XX(100, CONTINUE, "Continue")                                               \
  XX(101, SWITCHING_PROTOCOLS, "Switching Protocols")                         \
  XX(102, PROCESSING, "Processing")                                           \
  XX(103, EARLY_HINTS, "Early Hints")                                         \
  XX(200, OK, "OK")                                                           \
  XX(201, CREATED, "Created")                                                 \
  XX(202, ACCEPTED, "Accepted")                                               \
  XX(203, NON_AUTHORITATIVE_INFORMATION, "Non-Authoritative Information")     \
  XX(204, NO_CONTENT, "No Content")                                           \
  XX(205, RESET_CONTENT, "Reset Content")                                     \
  XX(206, PARTIAL_CONTENT, "Partial Content")                                 \
  XX(207, MULTI_STATUS, "Multi-Status")                                       \
  XX(208, ALREADY_REPORTED, "Already Reported")                               \
  XX(226, IM_USED, "IM Used")                                                 \
  XX(300, MULTIPLE_CHOICES, "Multiple Choices")                               \
  XX(301, MOVED_PERMANENTLY, "Moved Permanently")                             \
  XX(302, FOUND, "Found")                                                     \
  XX(303, SEE_OTHER, "See Other")                                             \
  XX(304, NOT_MODIFIED, "Not Modified")                                       \
  XX(305, USE_PROXY, "Use Proxy")                                             \
  XX(307, TEMPORARY_REDIRECT, "Temporary Redirect")                           \
  XX(308, PERMANENT_REDIRECT, "Permanent Redirect")                           \
  XX(400, BAD_REQUEST, "Bad Request")                                         \
  XX(401, UNAUTHORIZED, "Unauthorized")                                       \
  XX(402, PAYMENT_REQUIRED, "Payment Required")                               \
  XX(403, FORBIDDEN, "Forbidden")                                             \
  XX(404, NOT_FOUND, "Not Found")                                             \
  XX(405, METHOD_NOT_ALLOWED, "Method Not Allowed")                           \
  XX(406, NOT_ACCEPTABLE, "Not Acceptable")                                   \
  XX(407, PROXY_AUTHENTICATION_REQUIRED, "Proxy Authentication Required")     \
  XX(408, REQUEST_TIMEOUT, "Request Timeout")                                 \
  XX(409, CONFLICT, "Conflict")                                               \
  XX(410, GONE, "Gone")                                                       \
  XX(411, LENGTH_REQUIRED, "Length Required")                                 \
  XX(412, PRECONDITION_FAILED, "Precondition Failed")                         \
  XX(413, PAYLOAD_TOO_LARGE, "Payload Too Large")                             \
  XX(414, URI_TOO_LONG, "URI Too Long")                                       \
  XX(415, UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type")                   \
  XX(416, RANGE_NOT_SATISFIABLE, "Range Not Satisfiable")                     \
  XX(417, EXPECTATION_FAILED, "Expectation Failed")                           \
  XX(421, MISDIRECTED_REQUEST, "Misdirected Request")                         \
  XX(422, UNPROCESSABLE_ENTITY, "Unprocessable Entity")                       \
  XX(423, LOCKED, "Locked")                                                   \
  XX(424, FAILED_DEPENDENCY, "Failed Dependency")                             \
  XX(425, TOO_EARLY, "Too Early")                                             \
  XX(426, UPGRADE_REQUIRED, "Upgrade Required")                               \
  XX(428, PRECONDITION_REQUIRED, "Precondition Required")                     \
  XX(429, TOO_MANY_REQUESTS, "Too Many Requests")                             \
  XX(431, REQUEST_HEADER_FIELDS_TOO_LARGE, "Request Header Fields Too Large") \
  XX(451, UNAVAILABLE_FOR_LEGAL_REASONS, "Unavailable For Legal Reasons")     \
  XX(500, INTERNAL_SERVER_ERROR, "Internal Server Error")                     \
  XX(501, NOT_IMPLEMENTED, "Not Implemented")                                 \
  XX(502, BAD_GATEWAY, "Bad Gateway")                                         \
  XX(503, SERVICE_UNAVAILABLE, "Service Unavailable")                         \
  XX(504, GATEWAY_TIMEOUT, "Gateway Timeout")                                 \
  XX(505, HTTP_VERSION_NOT_SUPPORTED, "HTTP Version Not Supported")           \
  XX(506, VARIANT_ALSO_NEGOTIATES, "Variant Also Negotiates")                 \
  XX(507, INSUFFICIENT_STORAGE, "Insufficient Storage")                       \
  XX(508, LOOP_DETECTED, "Loop Detected")                                     \
  XX(510, NOT_EXTENDED, "Not Extended")                                       \
  XX(511, NETWORK_AUTHENTICATION_REQUIRED, "Network Authentication Required")

namespace sylar::http {

enum class HttpMethod : uint8_t {
#define XX(number, name, text) name = number,
  SYLAR_HTTP_METHOD_MAP(XX)
#undef XX
      INVALID_METHOD
};

enum class HttpStatus : uint16_t {
#define XX(code, name, text) name = code,
  SYLAR_HTTP_STATUS_MAP(XX)
#undef XX
};

/// Returns the method with exactly that name, in upper case as on the wire, or INVALID_METHOD if there is none.
SYLAR_API HttpMethod toHttpMethod(std::string_view name);
/// These are sylar's names for toHttpMethod(). `name` must not be null.
SYLAR_API HttpMethod StringToHttpMethod(const std::string& name);
SYLAR_API HttpMethod CharsToHttpMethod(const char* name);

/// Returns the name on the wire, or "<unknown>" for a value that is not a method. The text is never freed.
SYLAR_API const char* HttpMethodToString(HttpMethod method);
/// Returns the reason phrase, or "<unknown>" for a code that has none. The text is never freed.
SYLAR_API const char* HttpStatusToString(HttpStatus status);

}  // namespace sylar::http
