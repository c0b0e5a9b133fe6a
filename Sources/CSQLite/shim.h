// SQLite, for databases that people put into the state directory.
#include <sqlite3.h>
