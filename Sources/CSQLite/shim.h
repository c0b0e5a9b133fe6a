// SQLite, for vehiclesim's database and for tests.
#include <sqlite3.h>
