// Wine 8 lacks bcryptprimitives.dll, from which Rust's standard library takes random bytes.
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T size) {
    return SystemFunction036(data, size);
}
