// Hostile configuration files for libFuzzer: whatever the bytes, CToml gives a tree or one error, and no memory is hurt.

#include <cstddef>
#include <cstdint>

#include "CToml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  const ctoml_document document = ctoml_parse(reinterpret_cast<const char *>(bytes), count);
  if ((document.nodes == nullptr) == (document.error == nullptr)) __builtin_trap();
  ctoml_free(document);
  return 0;
}
