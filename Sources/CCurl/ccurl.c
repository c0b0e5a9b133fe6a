#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// The libcurl functions in use, with their types from the header.
#define FUNCTIONS(F)                                                                                                                 \
  F(global_init) F(version_info) F(multi_init) F(multi_cleanup) F(multi_add_handle) F(multi_remove_handle)                          \
  F(multi_perform) F(multi_poll) F(multi_wakeup) F(multi_info_read) F(easy_init) F(easy_cleanup) F(easy_setopt) F(easy_getinfo)      \
  F(easy_strerror) F(slist_append) F(slist_free_all)

static struct {
#define MEMBER(name) __typeof__(curl_##name) *name;
  FUNCTIONS(MEMBER)
} curl;

static const char *fill(void *library) {
#define FIND(name)                                                                                                                   \
  if (!(curl.name = (__typeof__(curl.name))dlsym(library, "curl_" #name))) return "libcurl is too old: version 7.85 or newer is required";
  FUNCTIONS(FIND)
  return NULL;
}

static const char *load(void) {
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  // An installed library cannot be loaded if it needs a newer C library than that with which the program was started.
  const int is_missing = !library && strstr(dlerror(), "libcurl.so.4: cannot open");
  if (!library) library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library && !is_missing) return "libcurl cannot be loaded; if the system was upgraded, restart vehicled";
  if (!library) return "libcurl is not installed; apt install libcurl4";
  const char *problem = fill(library);
  if (problem) return problem;
  const curl_version_info_data *version = curl.version_info(CURLVERSION_NOW);
  if (version->version_num < 0x075500) return "libcurl is too old: version 7.85 or newer is required";
  if (!(version->features & CURL_VERSION_SSL)) return "libcurl has no TLS support; apt install libcurl4";
  // Without OPENSSL_INIT_NO_ATEXIT (0x80000), OpenSSL would clean up in exit(3) while the HTTP thread can still use it.
  int (*init)(uint64_t, const void *) = (int (*)(uint64_t, const void *))dlsym(library, "OPENSSL_init_crypto");
  if (init) init(0x80000, NULL);
  if (curl.global_init(CURL_GLOBAL_ALL) != CURLE_OK) return "cannot initialise libcurl";
  return NULL;
}

const char *ccurl_load(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static int is_loaded;
  pthread_mutex_lock(&lock);
  const char *problem = is_loaded ? NULL : load();
  is_loaded = !problem;
  pthread_mutex_unlock(&lock);
  return problem;
}

CURLM *ccurl_multi(void) { return curl.multi_init(); }
void ccurl_multi_end(CURLM *multi) { curl.multi_cleanup(multi); }
CURLMcode ccurl_add(CURLM *multi, CURL *easy) { return curl.multi_add_handle(multi, easy); }
CURLMcode ccurl_remove(CURLM *multi, CURL *easy) { return curl.multi_remove_handle(multi, easy); }
CURLMcode ccurl_perform(CURLM *multi, int *running) { return curl.multi_perform(multi, running); }
CURLMcode ccurl_poll(CURLM *multi, int milliseconds) { return curl.multi_poll(multi, NULL, 0, milliseconds, NULL); }
CURLMcode ccurl_wake(CURLM *multi) { return curl.multi_wakeup(multi); }

CURL *ccurl_ended(CURLM *multi, CURLcode *result) {
  int left;
  for (CURLMsg *message; (message = curl.multi_info_read(multi, &left));) {
    if (message->msg != CURLMSG_DONE) continue;
    *result = message->data.result;
    return message->easy_handle;
  }
  return NULL;
}

CURL *ccurl_easy(void) { return curl.easy_init(); }
void ccurl_easy_end(CURL *easy) { curl.easy_cleanup(easy); }
CURLcode ccurl_set_text(CURL *easy, CURLoption option, const char *text) { return curl.easy_setopt(easy, option, text); }
CURLcode ccurl_set_number(CURL *easy, CURLoption option, long number) { return curl.easy_setopt(easy, option, number); }
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *pointer) { return curl.easy_setopt(easy, option, pointer); }
CURLcode ccurl_set_callback(CURL *easy, CURLoption option, ccurl_callback callback) { return curl.easy_setopt(easy, option, callback); }

CURLcode ccurl_set_body(CURL *easy, const void *bytes, size_t count) {
  CURLcode code = curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  return code ? code : curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, count ? bytes : "");
}

long ccurl_number(CURL *easy, CURLINFO info) {
  long number = 0;
  return curl.easy_getinfo(easy, info, &number) == CURLE_OK ? number : 0;
}

int ccurl_is_connected(CURL *easy) {
  curl_off_t microseconds = 0;
  return curl.easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds) == CURLE_OK && microseconds > 0;
}

const char *ccurl_text(CURL *easy, CURLINFO info) {
  char *text = NULL;
  return curl.easy_getinfo(easy, info, &text) == CURLE_OK ? text : NULL;
}

const char *ccurl_error_text(CURLcode code) { return curl.easy_strerror(code); }
struct curl_slist *ccurl_append(struct curl_slist *list, const char *text) { return curl.slist_append(list, text); }
void ccurl_free(struct curl_slist *list) { curl.slist_free_all(list); }
