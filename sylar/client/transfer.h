// Internal. One request and its answer, by a handle of libcurl's, which keeps its connection for the next one.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "sylar/base/internal.h"
#include "sylar/client/url.h"
#include "sylar/http/client.h"

namespace sylar::http::detail {

struct CurlDeleter {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
};
using CurlPtr = std::unique_ptr<CURL, CurlDeleter>;

/// A request, with the rules for its answer.
struct TransferPlan {
  const ClientOptions& options;
  const std::string& url;
  HttpMethod method;
  const FieldList& headers;
  const std::string& body;
  bool has_body;
  std::chrono::milliseconds timeout;
  const Login* login;  ///< or null
};

class Transfer {
 public:
  Transfer(CURL* handle, const TransferPlan& plan) : m_handle(handle), m_plan(plan) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Makes it. Throws ClientError and std::bad_alloc; then the handle and its connection must not be used again. May suspend: yes.
  ClientResponse run();

 private:
  struct ListDeleter {
    void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
  };

  void prepare();
  void addHeader(const std::string& line);
  template <class Value>
  void set(CURLoption option, Value value);
  size_t takeHead(std::string_view line);
  size_t takeBody(std::string_view bytes);
  [[noreturn]] void fail(CURLcode code) const;

  CURL* const m_handle;
  const TransferPlan& m_plan;
  std::unique_ptr<curl_slist, ListDeleter> m_headers;
  char m_what[CURL_ERROR_SIZE] = "";
  ClientResponse m_response;
  size_t m_head_size = 0;
  bool m_has_head = false;  // to its end
  bool m_is_too_large = false;
  std::exception_ptr m_thrown;  // by what libcurl has called
};

}  // namespace sylar::http::detail
