"""Writes the folders of a script, or fails if they are not what it would write (--check)."""

import filecmp
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def main(make):
    if sys.argv[1:] != ["--check"]:
        make(HERE)
        return
    with tempfile.TemporaryDirectory() as folder:
        make(pathlib.Path(folder))
        for path in pathlib.Path(folder).glob("*/*"):
            own = HERE / path.relative_to(folder)
            if path.is_file() and not (own.exists() and filecmp.cmp(path, own, shallow=False)):
                sys.exit(f"{own} is not what this script makes")
