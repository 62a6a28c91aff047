// An error that has an answer.
#pragma once

#include <stdexcept>

#include "sylar/http/http_names.h"

namespace sylar::http {

/// Thrown where a request turns out to be wrong only when a handler asks for a part of it. Whoever runs handlers answers
/// status().
class HttpError : public std::runtime_error {
 public:
  HttpError(HttpStatus status, const char* what) : std::runtime_error(what), m_status(status) {}
  HttpStatus status() const { return m_status; }

 private:
  HttpStatus m_status;
};

}  // namespace sylar::http
