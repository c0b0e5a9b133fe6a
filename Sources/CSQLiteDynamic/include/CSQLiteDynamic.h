// SQLite, loaded at the first query, so that a daemon without a database to import does not map it. The program defines none of SQLite's
// symbols.
#ifndef CSQLITEDYNAMIC_H
#define CSQLITEDYNAMIC_H

#include <sqlite3.h>

// The functions in use, without their prefix.
#define CSQLITE_FUNCTIONS(F)                                                                                                         \
  F(open_v2) F(close_v2) F(limit) F(exec) F(progress_handler) F(set_authorizer) F(prepare_v2) F(finalize) F(step) F(stmt_readonly)  \
  F(bind_parameter_count) F(bind_int64) F(bind_double) F(bind_text) F(column_count) F(column_type) F(column_bytes) F(column_double) \
  F(column_int64) F(column_blob) F(column_text) F(errmsg) F(errstr)

struct csqlite {
#define CSQLITE_MEMBER(name) __typeof__(sqlite3_##name) *name;
  CSQLITE_FUNCTIONS(CSQLITE_MEMBER)
};

/// Loads SQLite and looks up its functions. Returns NULL, or a static error message; then no function may be called. Thread-safe.
const char *csqlite_load(struct csqlite *functions);

#endif
