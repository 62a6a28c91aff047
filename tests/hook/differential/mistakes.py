#!/usr/bin/env python3
"""Seeds mistakes in the hooks, one at a time, and shows that hook_differential finds each within a minute.

  mistakes.py BUILD [name ...]      BUILD is a build directory with hook_differential in it, such as build/release
  mistakes.py check                 only that each mistake can still be made
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECONDS = 60
PROGRAM, ARCHIVE = "bin/hook_differential", "sylar/libsylar_hook.a"

# name: (source, piece, replacement)
MISTAKES = {
    "long_write_ends_early": (
        "hook_write.cc", "  if (first == 0 || !attempt::takesPieces(kind)) return first;\n  size =", "  return first;\n  size ="),
    "dontwait_waits": ("hook_read.cc", "  if ((flags & MSG_DONTWAIT) != 0) return true;\n", ""),
    "timeout_ignored": ("wait_loop.cc", "  if (timeout_ns > 0) {", "  if (false) {"),
    "copy_not_shared": ("hook_close.cc", "  if (original != nullptr) original->share();\n", ""),
    "passed_not_shared": ("scm_rights.cc", "    if (Entry* entry = FdTable::find(fd)) entry->share();\n", "    (void)fd;\n"),
    "waitall_takes_what_there_is": ("receive.cc", "(flags & MSG_WAITALL) != 0 ? INT_MAX", "false ? INT_MAX"),
    "peek_goes_on_behind_itself": (
        "receive.cc", "(flags & MSG_PEEK) != 0 && probe::socketOption(fd, SO_PEEK_OFF) < 0", "false"),
    "shut_down_messages_would_block": ("wait_loop.cc", "    m_shut_down = first ? ShutDown::kAtFirst : ShutDown::kInWait;\n", ""),
    "nonblocking_not_asked_for": ("wait_loop.cc", "    if ((flags & O_NONBLOCK) != 0) {", "    if (false) {"),
    "unix_writer_not_told_of_the_end": (
        "wait_loop.cc", "m_writes_to_unix = mayBeUnix(kind()) && probe::isUnixConnection(m_hooked.fd());", "m_writes_to_unix = false;"),
    "sets_of_select_left_empty": ("hook_select.cc", "      sets.restore();\n      const int now", "      const int now"),
    "address_hides_descriptors": (
        "hook_read.cc", "receiveMoreFrom(call, part, flags, from, from_size);",
        "[&] { const long n = call.run(once); return n <= 0 ? n : receiveMore(call, &part, 1, flags, size_t(n)); }();"),
    "connect_is_taken_for_a_write": ("wait_loop.cc", "m_direction == Direction::kWrite && !m_asks_again", "m_direction == Direction::kWrite"),
    "mark_not_noted": ("hook_flags.cc", "(option == SO_RCVLOWAT ||", "(option == -1 ||"),
}


def commands(build):
    text = subprocess.run(["ninja", "-C", build, "-t", "commands", PROGRAM], check=True, capture_output=True, text=True).stdout
    return text.splitlines()


def make(name):
    """Returns the path of the source, and its text with the mistake."""
    source, piece, replacement = MISTAKES[name]
    path = next((ROOT / "sylar/hook").rglob(source))
    text = path.read_text()
    if text.count(piece) != 1:
        sys.exit(f"{name}: its piece is {text.count(piece)} times in {path}")
    return path, text.replace(piece, replacement)


def build_with(name, build, folder):
    """Compiles the one source anew and links the program with it. Returns the program."""
    path, text = make(name)
    source = path.name
    wrong, program, archive = folder / source, folder / "differential", folder / "hook.a"
    wrong.write_text(text)
    lines = commands(build)
    compile_it = shlex.split(next(line for line in lines if line.endswith(f" {path}")))
    compiled = folder / f"{source}.o"
    for option, value in (("-o", compiled), ("-MF", folder / "d"), ("-c", wrong)):
        compile_it[compile_it.index(option) + 1] = str(value)
    subprocess.run(compile_it + ["-w"], cwd=build, check=True)
    archive.write_bytes((build / ARCHIVE).read_bytes())
    subprocess.run(["ar", "r", archive, compiled], check=True)
    link = next(line for line in reversed(lines) if f"-o {PROGRAM} " in line)
    link = link.replace(f"-o {PROGRAM} ", f"-o {program} ").replace(f" {ARCHIVE} ", f" {archive} ")
    subprocess.run(link, shell=True, cwd=build, check=True)
    return program


def is_found(name, build):
    with tempfile.TemporaryDirectory() as folder:
        program = build_with(name, build, pathlib.Path(folder))
        run = subprocess.run([program, "--seconds", str(SECONDS)], capture_output=True, text=True, timeout=10 * SECONDS)
        found = run.returncode == 1 and "differ from libc" in run.stdout
        said = run.stdout if found else run.stdout + run.stderr
        print(f"{name}: {'found' if found else 'NOT FOUND'}\n{said}", flush=True)
        return found


def main():
    if sys.argv[1:] == ["check"]:
        for name in MISTAKES:
            make(name)
        return
    build = pathlib.Path(sys.argv[1]).resolve()
    missed = [name for name in (sys.argv[2:] or MISTAKES) if not is_found(name, build)]
    sys.exit(f"not found: {' '.join(missed)}" if missed else 0)


main()
