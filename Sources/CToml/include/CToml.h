// A TOML document as a flat list of nodes, each with its line and column: a C interface to toml++ (libtomlplusplus-dev). Only the syntax is
// checked. Lines and columns are counted from 1, columns in code points. The depth is limited here; the caller must limit the size.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CTOML_TABLE, CTOML_ARRAY, CTOML_STRING, CTOML_INTEGER, CTOML_FLOAT, CTOML_BOOLEAN, CTOML_DATE
} ctoml_kind;

typedef struct {
  ctoml_kind kind;
  size_t children;                     // of a table or an array: the number of subtrees that follow, in the order of the file
  const char *key;                     // not terminated; no key in an array
  size_t key_length;
  uint32_t key_line, key_column;
  uint32_t line, column;               // of the value; of a table, its header
  const char *text;                    // of a string; not terminated
  size_t text_length;
  int64_t integer;                     // of an integer or a boolean
  double number;                       // of a float
} ctoml_node;

typedef struct {
  const ctoml_node *nodes;             // parents before children, the root table first; NULL when there is an error
  size_t count;
  const char *error;                   // NULL, or one line of text, and its position
  uint32_t error_line, error_column;
  void *owner;                         // of all the memory above
} ctoml_document;

ctoml_document ctoml_parse(const char *bytes, size_t count);
void ctoml_free(ctoml_document document);

#ifdef __cplusplus
}
#endif
