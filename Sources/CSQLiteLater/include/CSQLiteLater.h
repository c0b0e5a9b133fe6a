// SQLite, loaded at the first query: the functions of its header that the daemon uses are defined here, and call the library.
#ifndef CSQLITELATER_H
#define CSQLITELATER_H

#include <sqlite3.h>

/// Loads SQLite unless it is loaded. Returns NULL, or a static error message; then no SQLite function may be called. Thread-safe.
const char *csqlite_load(void);

#endif
