#include "CCrypto.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

// The functions in use, with their types from the headers.
#define FUNCTIONS(F)                                                                                                                 \
  F(EVP_CIPHER_CTX_new) F(EVP_CIPHER_CTX_free) F(EVP_CIPHER_CTX_set_padding) F(EVP_CipherInit_ex) F(EVP_CipherUpdate)               \
  F(EVP_CipherFinal_ex) F(EVP_aes_128_cbc) F(EVP_Digest) F(EVP_sha256) F(EVP_PBE_scrypt)

static struct {
#define MEMBER(name) __typeof__(name) *name;
  FUNCTIONS(MEMBER)
} crypto;

static const char *problem;

static void load(void) {
  void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    // An installed library cannot be loaded if it needs a newer C library than that with which the program was started.
    const int is_missing = strstr(dlerror(), "libcrypto.so.3: cannot open") != NULL;
    problem = is_missing ? "OpenSSL is not installed; apt install libssl3, and start the program again"
                         : "OpenSSL cannot be loaded; if the system was upgraded, start the program again";
    return;
  }
  // Without OPENSSL_INIT_NO_ATEXIT (0x80000), OpenSSL would clean up in exit(3) while another thread can still use it.
  int (*init)(uint64_t, const void *) = (int (*)(uint64_t, const void *))dlsym(library, "OPENSSL_init_crypto");
  if (init) init(0x80000, NULL);
#define FIND(name)                                                                                                                   \
  if (!(crypto.name = (__typeof__(crypto.name))dlsym(library, #name))) problem = "OpenSSL is too old: version 3.0 or newer is required";
  FUNCTIONS(FIND)
}

const char *ccrypto_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return problem;
}

int ccrypto_aes128_cbc(int encrypt, const uint8_t key[16], const uint8_t iv[16], const uint8_t *in, int count, int padding, uint8_t *out) {
  EVP_CIPHER_CTX *context = crypto.EVP_CIPHER_CTX_new();
  int done = 0, rest = 0;
  int is_ok = context && crypto.EVP_CipherInit_ex(context, crypto.EVP_aes_128_cbc(), NULL, key, iv, encrypt) &&
              crypto.EVP_CIPHER_CTX_set_padding(context, padding) && crypto.EVP_CipherUpdate(context, out, &done, in, count) &&
              crypto.EVP_CipherFinal_ex(context, out + done, &rest);
  crypto.EVP_CIPHER_CTX_free(context);
  return is_ok ? done + rest : -1;
}

int ccrypto_sha256(const uint8_t *in, size_t count, uint8_t out[32]) {
  return crypto.EVP_Digest(in, count, out, NULL, crypto.EVP_sha256(), NULL) ? 0 : -1;
}

int ccrypto_scrypt(
    const char *password, size_t password_count, const uint8_t *salt, size_t salt_count, uint64_t n, uint64_t r, uint8_t *out, size_t count) {
  return crypto.EVP_PBE_scrypt(password, password_count, salt, salt_count, n, r, 1, 0, out, count) ? 0 : -1;
}
