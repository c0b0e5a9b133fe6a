// libdeflate, which decompresses blocks of samples several times faster than zlib.
#include <libdeflate.h>
