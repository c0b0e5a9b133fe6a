// SQLite, for the history, for vehiclesim's database, and for tests.
#include <sqlite3.h>

// Turns off the count of allocated memory, for which SQLite takes a lock at each allocation. Must precede all other calls. Swift cannot call
// sqlite3_config, which is variadic.
static inline int csqlite_disable_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
