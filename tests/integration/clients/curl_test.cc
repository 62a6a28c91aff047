// Unmodified libcurl in many fibers, by each of the ways in which it waits.
#include <curl/curl.h>
#include <sys/select.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/integration/clients/fleet.h"
#include "tests/support/alias_call.h"

namespace sylar::test {
namespace {

struct Free {
  void operator()(CURL* easy) const { ::curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, Free>;

/// Performs what was asked of the handle.
using Perform = CURLcode (*)(CURL* easy);

/// For the ways with a multi handle: `wait` returns when it may have something to do.
template <class Wait>
CURLcode performWith(CURL* easy, Wait wait) {
  CURLM* const multi = ::curl_multi_init();
  ::curl_multi_add_handle(multi, easy);
  for (int running = 1; running > 0;) {
    EXPECT_EQ(::curl_multi_perform(multi, &running), CURLM_OK);
    if (running > 0) wait(multi);
  }
  int left = 0;
  const CURLcode result = ::curl_multi_info_read(multi, &left)->data.result;
  ::curl_multi_remove_handle(multi, easy);
  ::curl_multi_cleanup(multi);
  return result;
}

CURLcode performByPoll(CURL* easy) {
  return performWith(easy, [](CURLM* multi) { EXPECT_EQ(::curl_multi_poll(multi, nullptr, 0, 60'000, nullptr), CURLM_OK); });
}

CURLcode performBySelect(CURL* easy) {
  return performWith(easy, [](CURLM* multi) {
    long timeout_ms = -1;
    EXPECT_EQ(::curl_multi_timeout(multi, &timeout_ms), CURLM_OK);
    if (timeout_ms < 0 || timeout_ms > 100) timeout_ms = 100;
    timeval timeout{0, timeout_ms * 1000};
    fd_set reads, writes, errors;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_ZERO(&errors);
    int last = -1;
    EXPECT_EQ(::curl_multi_fdset(multi, &reads, &writes, &errors, &last), CURLM_OK);
    EXPECT_GE(::select(last + 1, &reads, &writes, &errors, &timeout), 0);
  });
}

size_t takeBytes(const char* bytes, size_t size, size_t count, void* body) {
  static_cast<std::string*>(body)->append(bytes, size * count);
  return size * count;
}

/// The body, or the error.
SYLAR_CALLS_ALIAS std::string get(CURL* easy, Perform perform, const std::string& url) {
  std::string body;
  char error[CURL_ERROR_SIZE] = "";
  ::curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  ::curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &takeBytes);
  ::curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
  ::curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
  const CURLcode result = perform(easy);
  long status = 0;
  ::curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return line(std::to_string(result) + ' ' + ::curl_easy_strerror(result)) + line(std::to_string(status)) + line(body);
}

template <Perform perform>
std::string client(Server& server) {
  const Easy easy(::curl_easy_init());
  const std::string port = ':' + std::to_string(server.port());
  const std::string by_name = "http://" + std::string(Server::kName) + port;
  const std::string by_address = "http://" + std::string(Server::kAddress) + port;
  std::string said = get(easy.get(), perform, by_name + "/large");
  said += get(easy.get(), perform, by_name + "/slow");
  said += get(easy.get(), perform, by_name + "/nothing");
  server.stalls();
  said += get(easy.get(), perform, by_address + "/slow");
  server.dies();
  ::curl_easy_setopt(easy.get(), CURLOPT_FRESH_CONNECT, 1L);  // if a kept connection failed, it would try a new one
  said += get(easy.get(), perform, by_address + "/slow");
  server.isGone();
  said += get(easy.get(), perform, by_address + "/large");
  server.returns();
  said += get(easy.get(), perform, by_address + "/large");
  return said;
}

// HA-6
TEST(Curl, EasySaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("nginx", &client<&::curl_easy_perform>); }
// HA-6
TEST(Curl, MultiPollSaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("nginx", &client<&performByPoll>); }
// HA-6
TEST(Curl, SelectSaysInFibersWhatItSaysOnAThread) { saysInFibersWhatItSaysOnAThread("nginx", &client<&performBySelect>); }

}  // namespace
}  // namespace sylar::test
