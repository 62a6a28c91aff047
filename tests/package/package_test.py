#!/usr/bin/env python3
"""The installed package: a project outside the tree finds it, links it and runs, by CMake and by pkg-config.

    package_test.py SOURCE_DIR BUILD_DIR WORK_DIR static|shared|headers|sanitized

Installs the static libraries of BUILD_DIR, or builds shared ones beside it first; into a folder of WORK_DIR, which it then moves:
nothing may depend on where it was built for. With "headers" it looks at the public headers only, with "sanitized" at programs that are
built with a sanitizer, which the package is not.
"""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

source, build, work, kind = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
consumer = source / "tests/package/consumer"


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=True, **options)


def cmake(source_dir, build_dir, *definitions):
    run("cmake", "-G", "Ninja", "-S", source_dir, "-B", build_dir, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", *definitions)
    run("cmake", "--build", build_dir, "--parallel", os.cpu_count())


# The same compiler and the same cache rules as BUILD_DIR's, so that shared libraries are linked of objects that are there already.
cache = (build / "CMakeCache.txt").read_text()
os.environ["CXX"] = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]
os.environ["CCACHE_NOHASHDIR"] = "1"
os.environ["CCACHE_BASEDIR"] = str(source)
os.environ["CCACHE_SLOPPINESS"] = "time_macros"

shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
if kind == "shared":
    build = build.parent / "shared"
    cmake(source, build, "-DSYLAR_TESTS=OFF", "-DSYLAR_EXAMPLES=OFF", "-DBUILD_SHARED_LIBS=ON")
run("cmake", "--install", build, "--prefix", work / "first", stdout=subprocess.DEVNULL)
prefix = (work / "first").rename(work / "prefix")

environment = dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib"), PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
flags = run("pkg-config", "--cflags", "--libs", "sylar", env=environment, capture_output=True, text=True).stdout.split()


def compiled(text):
    """The compiler's verdict on a user's source with `text`."""
    command = [*"g++ -fsyntax-only -x c++ -".split(), *(flag for flag in flags if not flag.startswith("-l"))]
    return subprocess.run(command, input=text, env=environment, capture_output=True, text=True)


def compiles(text):
    return compiled(text).returncode == 0


def check_headers():
    """Public headers bring what sylar's users know, and nothing that they must not say. Nothing else is installed."""
    known = """address application config env fiber hook http/http http/http_server http/http_session http/servlet iomanager log macro mutex
        noncopyable scheduler singleton socket socket_stream stream tcp_server thread timer util"""
    brought = {"application": "sylar::Config* a; sylar::http::HttpServer::ptr b; sylar::IOManager* c; sylar::TcpServer::ptr d;",
               "http/http_server": "sylar::IOManager iom; sylar::http::HttpRequest a; sylar::http::HttpSession::ptr b;",
               "iomanager": "sylar::Thread::ptr a; sylar::Mutex b; sylar::Timer::ptr c; sylar::Fiber::ptr d;"}
    sources = {name: f'#include "sylar/{name}.h"\nvoid user() {{ {brought.get(name, "")} }}\n' for name in known.split()}
    with ThreadPoolExecutor(os.cpu_count()) as at_once:
        for name, good in zip(sources, at_once.map(compiles, sources.values())):
            if not good:
                sys.exit(f"sylar/{name}.h, which sylar's users know, does not compile alone, or does not bring: {brought.get(name)}")

    hidden = """sylar::Entry* entry; | sylar::Idle<int>* idle; | sylar::Request request; | sylar::QueueNode node; | sylar::FiberCore core;
        fiber.next = nullptr; | fiber.move(1, 2); | fiber.m_control[0]; | sylar::detail::FiberControl::of(fiber);
        iom.idle(); | iom.workers(); | iom.m_core; | sylar::detail::SchedulerCore::of(iom); | sylar::Timer timer; | sylar::EpollEngine* engine;"""
    top = '#include "sylar/sylar.h"\n'
    user = "void user{}([[maybe_unused]] sylar::Fiber& fiber, [[maybe_unused]] sylar::IOManager& iom) {{ {} }}\n"
    if not compiles(top + user.format("", "fiber.getId(); iom.getName();")):
        sys.exit("sylar/sylar.h does not compile")
    statements = re.split(r"[|\n]", hidden)  # a line for each, so that the compiler says which it refuses
    verdict = compiled(top + "".join(user.format(number, statement) for number, statement in enumerate(statements)))
    refused = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: error", verdict.stderr, re.MULTILINE)}
    for line, statement in enumerate(statements, start=2):
        if line not in refused:
            sys.exit(f"a user can say: {statement.strip()}")

    installed = {path.relative_to(prefix / "include") for path in (prefix / "include").rglob("*") if path.is_file()}
    public = {path.relative_to(source / "include") for path in (source / "include").rglob("*.h")}
    if installed != public:
        sys.exit(f"installed and not public, or the reverse: {sorted(map(str, installed ^ public))}")


def check_sanitized():
    """RT-3.9: each sanitizer of each compiler says what it says of a program without fibers, and ThreadSanitizer's says what is missing."""
    silent = dict.fromkeys("exceptions by_hand threads exit exit_thread".split())
    leaks = {"exit": None, "exit_thread": None, "exceptions": None}
    faults = {"use_after_free": "heap-use-after-free", "overflow": "stack-buffer-overflow", "use_after_return": "stack-use-after-return",
              "guard": "stack.overflow", "leak": "leaked"}
    verdicts = {"address": silent | leaks | faults, "leak": leaks, "undefined": silent, "thread": {"exceptions": "Link it with a build"}}
    builds = [(compiler, sanitizer) for compiler in ("g++", "clang++") if shutil.which(compiler) for sanitizer in verdicts]

    def check(compiler, sanitizer):
        program = work / f"{compiler}_{sanitizer}"
        run(compiler, "-O1", "-g1", f"-fsanitize={sanitizer}", consumer / "sanitized.cc", "-o", program, *flags)
        for case, expected in verdicts[sanitizer].items():
            command = [source / "scripts/run_sanitized.sh", program, case]
            moves = "0" if case.startswith("exit") else "1"  # frames that ASan has moved aside are unknown to the leak checker
            options = dict(environment, ASAN_OPTIONS=f"detect_stack_use_after_return={moves}", UBSAN_OPTIONS="halt_on_error=1")
            ended = subprocess.run(command, env=options, capture_output=True, text=True)
            # The leak checker finds no kernel thread of a thread that is a fiber, and says so.
            said = re.sub(r"==\d+==Running thread \d+ was not suspended. False leaks are possible.\n", "", ended.stderr)
            said = re.sub(r".* fibers cannot be threads here, so to libraries all fibers of a worker are one\n", "", said)
            good = ended.returncode == 0 and said == "" if expected is None else ended.returncode != 0 and re.search(expected, ended.stderr)
            if not good:
                yield f"{compiler} -fsanitize={sanitizer}, {case}: status {ended.returncode}, expected {expected or 'nothing'}:\n{ended.stderr[:4000]}"

    with ThreadPoolExecutor(os.cpu_count()) as at_once:
        wrong = [text for texts in at_once.map(lambda build: list(check(*build)), builds) for text in texts]
    if wrong:
        sys.exit("\n".join(wrong))


if kind == "headers":
    check_headers()
    sys.exit()
if kind == "sanitized":
    check_sanitized()
    sys.exit()


def run_both(folder):
    run(folder / "consumer", env=environment)
    (folder / "conf").mkdir()
    run(folder / "no_application", folder / "conf", env=environment)


# CD-U1, CD-U2
cmake(consumer, work / "by_cmake", f"-DCMAKE_PREFIX_PATH={prefix}")
run_both(work / "by_cmake")
# With -fPIC a program has no copy of libc's variables, so what the library does to these is done to libc's own.
(work / "by_pkg_config").mkdir()
for program in ("consumer", "no_application"):
    run("g++", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", consumer / f"{program}.cc", "-o", work / "by_pkg_config" / program, *flags)
run_both(work / "by_pkg_config")

# RT-4.2: the frames of users touch the guard, too.
if "SYLAR_HAS_STACK_PROBES:INTERNAL=1" in cache:
    for way, text in (("pkg-config", " ".join(flags)), ("CMake", (work / "by_cmake/build.ninja").read_text())):
        if "-fstack-clash-protection" not in text:
            sys.exit(f"users by {way} compile without -fstack-clash-protection")

# HA-1: the hooks stay where only other libraries ask for their names.
(work / "asks_for_nothing.cc").write_text("int main() {}\n")
run("g++", "-Wl,--as-needed", work / "asks_for_nothing.cc", "-o", work / "asks_for_nothing", *flags)
names = run("ldd" if kind == "shared" else "nm", work / "asks_for_nothing", env=environment, capture_output=True, text=True).stdout
if ("libsylar_hook" if kind == "shared" else " T connect\n") not in names:
    sys.exit("the linker has dropped the hooks")

# Internals are hidden in the libraries of the upper modules, unless a header marks them.
if kind == "shared":
    for module in "config log net http web app".split():
        command = "nm", "--dynamic", "--demangle", "--defined-only", prefix / f"lib/libsylar_{module}.so"
        exported = run(*command, capture_output=True, text=True).stdout
        internal = {name for header in (source / "sylar" / module).rglob("*.h") for name in re.findall(r"^(?:class|struct) (\w+) ", header.read_text(), re.MULTILINE)}
        if visible := sorted(name for name in internal - {"SYLAR_API"} if f"detail::{name}::" in exported):
            sys.exit(f"libsylar_{module}.so exports {', '.join(visible)}")

# The runner finds its object wherever both are.
if run(prefix / "bin/sylar-run", "echo", "ran", capture_output=True, text=True).stdout != "ran\n":
    sys.exit("sylar-run does not run echo")

linked = run("ldd", work / "by_pkg_config/consumer", env=environment, capture_output=True, text=True).stdout
if ("libsylar" in linked) != (kind == "shared"):
    sys.exit(f"the libraries are {kind}, and the program needs:\n{linked}")
