// The exception that makes the server answer with a given status.
#pragma once

#include <stdexcept>

#include "sylar/api.h"
#include "sylar/http/http_names.h"

namespace sylar::http {

/// The server answers with status() when this exception leaves a handler. The library throws it if a request turns out to be
/// wrong only when a handler asks for a part of it. Handlers may throw it as well.
class SYLAR_API HttpError : public std::runtime_error {
 public:
  HttpError(HttpStatus status, const char* what) : std::runtime_error(what), m_status(status) {}
  HttpStatus status() const { return m_status; }

 private:
  HttpStatus m_status;
};

}  // namespace sylar::http
