// SQLite that is loaded when a database is asked for the first time, and costs nothing before: the functions of its header that the
// daemon uses are defined here, and go to the library.
#ifndef CSQLITELATER_H
#define CSQLITELATER_H

#include <sqlite3.h>

/// Loads SQLite; NULL, or why that cannot be: then none of its functions may be called. Any thread.
const char *csqlite_load(void);

#endif
