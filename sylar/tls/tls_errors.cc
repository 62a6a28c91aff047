#include "sylar/tls/tls_errors.h"

#include <openssl/err.h>

namespace sylar::detail {

std::string takeTlsErrors() {
  std::string all;
  const char* data = nullptr;
  int flags = 0;
  while (const unsigned long error = ::ERR_get_error_all(nullptr, nullptr, nullptr, &data, &flags)) {
    if (!all.empty()) all += "; ";
    const char* const reason = ::ERR_reason_error_string(error);
    all += reason != nullptr ? reason : "error " + std::to_string(error);
    if ((flags & ERR_TXT_STRING) != 0 && data != nullptr && *data != '\0') (all += ": ") += data;
  }
  return all;
}

}  // namespace sylar::detail
