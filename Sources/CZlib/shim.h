// zlib, for the blocks of samples.
#include <zlib.h>
