// The functions of OpenSSL's libcrypto that are in use. The library is loaded at the first call, so that programs that need none do not map
// it.
#ifndef CCRYPTO_H
#define CCRYPTO_H

#include <stddef.h>
#include <stdint.h>

/// Loads the library. Returns NULL, or a static error message; then no other function may be called. Thread-safe.
const char *ccrypto_load(void);

/// AES-128 in CBC mode. `out` has room for `count` + 16 bytes. With `padding`, that of PKCS#7 is appended or removed; without it, `count`
/// must be a multiple of 16. Returns the number of bytes in `out`, or -1.
int ccrypto_aes128_cbc(int encrypt, const uint8_t key[16], const uint8_t iv[16], const uint8_t *in, int count, int padding, uint8_t *out);

/// SHA-256. Returns 0, or -1.
int ccrypto_sha256(const uint8_t *in, size_t count, uint8_t out[32]);

/// scrypt of RFC 7914 with parallelism 1. Returns 0, or -1.
int ccrypto_scrypt(
    const char *password, size_t password_count, const uint8_t *salt, size_t salt_count, uint64_t n, uint64_t r, uint8_t *out, size_t count);

#endif
