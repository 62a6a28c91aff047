"""Says which objects and libraries are marked for CET (IBT, SHSTK), and fails if one is that should not be, or the other way round."""

import subprocess
import sys


def marked(readelf, file):
    notes = subprocess.run([readelf, "--notes", file], check=True, capture_output=True, text=True).stdout
    return any("IBT" in line or "SHSTK" in line for line in notes.splitlines() if "x86 feature" in line)


def main():
    readelf, *arguments = sys.argv[1:]
    expected, failed, seen = None, False, 0
    for argument in arguments:
        if argument in ("--marked", "--not-marked"):
            expected = argument == "--marked"
            continue
        is_marked = marked(readelf, argument)
        print(f"{argument}: {'marked' if is_marked else 'not marked'}")
        failed |= is_marked != expected
        seen += 1
    sys.exit(failed or seen < 2)


main()
