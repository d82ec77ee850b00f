// Compiles HLSL with one of Microsoft's compilers, with the arguments of wgpu-hal's DX12 backend:
//
//     hlsl.exe dxc|fxc SECONDS < LIST
//
// A line of LIST is `PROFILE ENTRY PATH`. For each text it writes `@ OUTCOME SECONDS PATH`, where
// the outcome is `taken`, or `refused` with the compiler's messages on the lines before. A text
// that takes more seconds of CPU is `slow`, and ends the program.

#define COBJMACROS
#include <d3dcompiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The part of dxcapi.h that is used, since MinGW lacks the file.
typedef struct {
    const void *text;
    SIZE_T size;
    UINT encoding;
} Source;
typedef struct Result {
    struct {
        void *unknown[3];
        HRESULT(WINAPI *status)(struct Result *, HRESULT *);
        HRESULT(WINAPI *object)(struct Result *, ID3DBlob **);
        HRESULT(WINAPI *messages)(struct Result *, ID3DBlob **);
    } *table;
} Result;
typedef struct Compiler {
    struct {
        void *unknown[3];
        HRESULT(WINAPI *compile)(struct Compiler *, const Source *, const wchar_t **, UINT, void *,
                                 const GUID *, Result **);
    } *table;
} Compiler;
typedef HRESULT(WINAPI *Create)(const GUID *, const GUID *, Compiler **);
static const GUID COMPILER = {
    0x73e22d93, 0xe6ce, 0x47f3, {0xb5, 0xbf, 0xf0, 0x66, 0x4f, 0x39, 0xc1, 0xb0}};
static const GUID COMPILER_3 = {
    0x228b4687, 0x5a6a, 0x4730, {0x90, 0x0c, 0x97, 0x02, 0xb2, 0x20, 0x3f, 0x54}};
static const GUID RESULT = {
    0x58346cda, 0xdde7, 0x4497, {0x94, 0x61, 0x6f, 0x87, 0xaf, 0x5e, 0x06, 0x59}};

static double most;
static volatile double began;
static char path[4096];

// The CPU time of this program.
static double cpu(void) {
    FILETIME start, end, kernel, user;
    GetProcessTimes(GetCurrentProcess(), &start, &end, &kernel, &user);
    ULARGE_INTEGER ticks = {{user.dwLowDateTime, user.dwHighDateTime}};
    return ticks.QuadPart * 1e-7;
}

static void tell(const char *outcome) {
    printf("@ %s %.2f %s\n", outcome, cpu() - began, path);
    fflush(stdout);
}

static DWORD WINAPI watch(void *unused) {
    (void)unused;
    while (cpu() - began < most) {
        Sleep(50);
    }
    tell("slow");
    TerminateProcess(GetCurrentProcess(), 0);
    return 0;
}

// Both give the object, if there is one, and messages, if there are any.
static void by_dxc(Compiler *dxc, Source source, const char *profile, const char *entry,
                   ID3DBlob **object, ID3DBlob **messages) {
    wchar_t wide[2][64];
    mbstowcs(wide[0], entry, 64);
    mbstowcs(wide[1], profile, 64);
    const wchar_t *arguments[] = {L"-E",  wide[0], L"-T",           wide[1], L"-HV",
                                  L"2018", L"-no-warnings", L"-Ges", L"-enable-16bit-types"};
    Result *result;
    if (dxc->table->compile(dxc, &source, arguments, 9, NULL, &RESULT, &result)) {
        return;
    }
    HRESULT status = E_FAIL;
    result->table->status(result, &status);
    result->table->messages(result, messages);
    if (!status) {
        result->table->object(result, object);
    }
}

static void by_fxc(pD3DCompile fxc, Source source, const char *profile, const char *entry,
                   ID3DBlob **object, ID3DBlob **messages) {
    fxc(source.text, source.size, "", NULL, NULL, entry, profile, D3DCOMPILE_ENABLE_STRICTNESS, 0,
        object, messages);
}

int main(int count, char **arguments) {
    if (count != 3) {
        return 2;
    }
    int is_dxc = !strcmp(arguments[1], "dxc");
    most = atof(arguments[2]);
    HMODULE library = LoadLibraryA(is_dxc ? "dxcompiler.dll" : "d3dcompiler_47.dll");
    void *function = library ? GetProcAddress(library, is_dxc ? "DxcCreateInstance" : "D3DCompile")
                             : NULL;
    Compiler *dxc = NULL;
    if (!function || (is_dxc && ((Create)function)(&COMPILER, &COMPILER_3, &dxc))) {
        fprintf(stderr, "the compiler cannot be loaded\n");
        return 2;
    }
    char profile[64], entry[64];
    for (int first = 1; scanf(" %63s %63s %4095[^\n]", profile, entry, path) == 3; first = 0) {
        FILE *file = fopen(path, "rb");
        if (!file) {
            fprintf(stderr, "no file %s\n", path);
            return 2;
        }
        fseek(file, 0, SEEK_END);
        long size = ftell(file);
        rewind(file);
        char *text = malloc(size);
        Source source = {text, fread(text, 1, size, file), 65001};
        fclose(file);
        ID3DBlob *object = NULL, *messages = NULL;
        began = cpu();
        if (first) {
            CreateThread(NULL, 0, watch, NULL, 0, NULL);
        }
        if (is_dxc) {
            by_dxc(dxc, source, profile, entry, &object, &messages);
        } else {
            by_fxc((pD3DCompile)function, source, profile, entry, &object, &messages);
        }
        // wgpu takes any message of DXC for a failure, and FXC's warnings for none.
        int told = messages && ID3D10Blob_GetBufferSize(messages) > 1;
        int taken = object && !(is_dxc && told);
        if (told && !taken) {
            printf("%.*s\n", (int)ID3D10Blob_GetBufferSize(messages),
                   (char *)ID3D10Blob_GetBufferPointer(messages));
        }
        tell(taken ? "taken" : "refused");
        if (object) {
            ID3D10Blob_Release(object);
        }
        if (messages) {
            ID3D10Blob_Release(messages);
        }
        free(text);
    }
    return 0;
}
