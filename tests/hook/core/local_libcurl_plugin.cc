// A plugin that brings libcurl along, for a test.
#include <curl/curl.h>

/// Is compiled so that the call returns to the plugin's host.
extern "C" [[gnu::visibility("default")]] int perform(CURL* easy) { return ::curl_easy_perform(easy); }
