#!/bin/sh
# Stands in for another platform's C compiler and archiver while Rust code is only type-checked for it. Nothing is
# linked then, so empty files in place of the objects and archives asked for are as good as real ones.
for argument; do
    # Microsoft's tools name their output in the options -Fo and -out:.
    file=${argument#-Fo}
    file=${file#-out:}
    case $file in
        *.o | *.obj | *.a | *.lib) : > "$file" ;;
    esac
done
