#!/bin/sh
# The device tests, a program for Windows, under Wine. docs/dx12.md says what the variables are for.
here=$(cd "$(dirname "$0")/.." && pwd)
export WINEPREFIX="$here/wine" WINEDEBUG="${WINEDEBUG:--all}"
export WINEDLLOVERRIDES="mscoree,mshtml=;d3d12,d3d12core=n"
export LP_NATIVE_VECTOR_WIDTH=128 GALLIVM_PERF=nopt WGPU_VALIDATION_INDIRECT_CALL=0
export WGPU_DX12_COMPILER=dxc TILEWISE_ONLY=dx12 TILEWISE_REQUIRE=dx12
exec /usr/lib/wine/wine64 "$here/device.exe" "$@"
