/* bcryptprimitives.dll for a Wine that has none (Wine 8): the one function that Rust's standard library imports, over
 * the generator that advapi32 exports under a number. */
#include <limits.h>
#include <stddef.h>

__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *into, unsigned long length);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *into, size_t length)
{
    unsigned char *const end = into + length;
    while (into != end) {
        const size_t left = (size_t)(end - into);
        const unsigned long part = left > LONG_MAX ? LONG_MAX : (unsigned long)left;
        if (!SystemFunction036(into, part))
            return 0;
        into += part;
    }
    return 1;
}
