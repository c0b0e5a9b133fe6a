// SQLite, for databases that people put into the state directory, and for what vehiclesim keeps.
#include <sqlite3.h>
