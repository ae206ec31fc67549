"""One more line of a file that only grows. Torch-free."""

import os
from io import FileIO

from slimwise.errors import ArtifactError


def append_line(file: FileIO, line: bytes) -> None:
    """Add the line to a file that is open to append; it then survives the end of the machine.

    ArtifactError if it cannot be written; the file is then as it was before.
    """
    size = os.fstat(file.fileno()).st_size
    try:
        written = file.write(line)
        if written != len(line):
            raise OSError(f"{written} of {len(line)} bytes written")
        os.fsync(file.fileno())
    except OSError as failure:
        file.truncate(size)
        raise ArtifactError(
            f"cannot write {file.name}: {failure}. Free some space; the same command resumes."
        ) from failure
