// A second opinion: what Boost.Beast's parser makes of a message that we accept.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "sylar/check.h"
#include "sylar/http/char_class.h"
#include "sylar/http/http.h"

namespace sylar::http {

using FieldTexts = std::vector<std::pair<std::string, std::string>>;

/// In an order of their own, for Beast keeps equal names together; without the host, which a target may replace.
inline FieldTexts inOrder(FieldTexts fields) {
  for (auto& field : fields) std::transform(field.first.begin(), field.first.end(), field.first.begin(), toLower);
  std::erase_if(fields, [](const auto& field) { return field.first == "host"; });
  std::sort(fields.begin(), fields.end());
  return fields;
}

/// `request` was read from the front of `input`, and `left` bytes stayed. Beast must accept its head and find the same parts in
/// it. It may refuse the body, for it is stricter about chunk extensions; else it must see the same, and the same end.
inline void checkWithBeast(std::string_view input, const HttpRequest& request, size_t left) {
  namespace http = boost::beast::http;
  if (input.starts_with("\r\n")) input.remove_prefix(2);
  http::request_parser<http::string_body> beast;
  beast.header_limit(1 << 20);
  boost::beast::error_code error;
  beast.eager(true);
  size_t taken = 0;
  while (!error && !beast.is_done()) {
    const size_t count = beast.put(boost::asio::const_buffer(input.data() + taken, input.size() - taken), error);
    taken += count;
    if (count == 0) break;
  }
  SYLAR_CHECK(beast.is_header_done());
  const auto& message = beast.get();
  SYLAR_CHECK(message.method_string() == HttpMethodToString(request.getMethod()));
  SYLAR_CHECK_EQ(message.version(), 10u + (request.getVersion() & 1u));
  const std::string target = request.getPath() + (request.getQuery().empty() ? "" : "?" + request.getQuery());
  SYLAR_CHECK(!target.starts_with('/') || !message.target().starts_with('/') || message.target() == target ||
              message.target() == target + '?');
  FieldTexts ours, beasts;
  for (size_t i = 0; i < request.headers().size(); ++i) ours.emplace_back(request.headers()[i].name, request.headers()[i].value);
  for (const auto& field : message) {
    beasts.emplace_back(std::string(field.name_string().data(), field.name_string().size()),
                        std::string(field.value().data(), field.value().size()));
  }
  if (request.trailers().empty()) SYLAR_CHECK(inOrder(ours) == inOrder(beasts));  // else Beast has them among the fields
  if (error || !beast.is_done()) return;
  SYLAR_CHECK(message.body() == request.getBody());
  SYLAR_CHECK_EQ(input.size() - taken, left);
}

}  // namespace sylar::http
