// libcurl, loaded at the first request, so that a daemon without HTTP requests neither maps nor initialises it. Also wraps libcurl's
// variadic functions, which Swift cannot call. Results are those of libcurl.
#pragma once
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <stddef.h>
#include <stdint.h>

// Loads the library if it is not loaded yet. Returns NULL, or a static error message.
const char *ccurl_load(void);

CURLM *ccurl_multi(void);
void ccurl_multi_end(CURLM *multi);
CURLMcode ccurl_add(CURLM *multi, CURL *easy);
CURLMcode ccurl_remove(CURLM *multi, CURL *easy);
CURLMcode ccurl_perform(CURLM *multi, int *running);
// Waits for network activity or a wake-up, for at most this many milliseconds.
CURLMcode ccurl_poll(CURLM *multi, int milliseconds);
// Ends the current or next poll. This is the only function that other threads may call.
CURLMcode ccurl_wake(CURLM *multi);
// Returns the next completed transfer with its result, or NULL.
CURL *ccurl_ended(CURLM *multi, CURLcode *result);

typedef size_t (*ccurl_callback)(char *bytes, size_t size, size_t count, void *context);
CURL *ccurl_easy(void);
void ccurl_easy_end(CURL *easy);
CURLcode ccurl_set_text(CURL *easy, CURLoption option, const char *text);
CURLcode ccurl_set_number(CURL *easy, CURLoption option, long number);
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *pointer);
CURLcode ccurl_set_callback(CURL *easy, CURLoption option, ccurl_callback callback);
// Sets the request body; libcurl copies it.
CURLcode ccurl_set_body(CURL *easy, const void *bytes, size_t count);
long ccurl_number(CURL *easy, CURLINFO info);
// Whether the connection was established, including TLS and a proxy, so that the request could be sent.
int ccurl_is_connected(CURL *easy);
const char *ccurl_text(CURL *easy, CURLINFO info);
const char *ccurl_error_text(CURLcode code);
struct curl_slist *ccurl_append(struct curl_slist *list, const char *text);
void ccurl_free(struct curl_slist *list);
