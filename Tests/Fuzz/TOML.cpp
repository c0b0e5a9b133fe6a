// Fuzzes the TOML parser: any bytes result in either a tree or an error.

#include <cstddef>
#include <cstdint>

#include "CToml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  const ctoml_document document = ctoml_parse(reinterpret_cast<const char *>(bytes), count);
  if ((document.nodes == nullptr) == (document.error == nullptr)) __builtin_trap();
  ctoml_free(document);
  return 0;
}
